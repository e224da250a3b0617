// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

// By what commands know a volume. Anybody can give a computer of the network any name, so no such name may
// pass for a home or for another volume.

extension VolumeRecord {
  /// By what commands know it: what a server shares, by both their names; no name of a volume has a slash.
  ///
  /// No two places give the same title.
  package var title: String {
    let own = String(decoding: name, as: UTF8.self)
    return switch place {
    case .volumes: own
    case .server(let host) where Self.isReserved(host): path(in: place)
    case .server(let host): "\(host)/\(own)"
    case .network: "Network/\(own)"
    case .users: "Users/\(own)"
    }
  }

  /// Whether it is in the tree for a user.
  package func isVisible(to user: UInt32) -> Bool { owner == nil || owner == user }

  /// The title, and whose it is, for people.
  package var titleAndOwner: String {
    let owner = owner.map { LocalAccounts.users.name(of: $0) ?? "uid \($0)" } ?? "all users"
    return "\(title.sanitized) of \(owner.sanitized)"
  }

  /// Whether titles of other volumes, or paths in the tree, begin with that name.
  private static func isReserved(_ host: String) -> Bool {
    ["Network", "Users", "Volumes"].contains { areOneName(Array($0.utf8), Array(host.utf8)) }
  }

  private func path(in place: Place) -> String { "\(place.path)/\(String(decoding: name, as: UTF8.self))" }

  /// Those that a text means: their title, or their path below the root of the tree.
  ///
  /// What is spelled in another way counts only where nothing is spelled like the text. Each user who looks
  /// for what a computer shares gets a volume of their own there: a user means that one, and root the one for
  /// all users.
  package static func meant(
    by text: String, among records: [VolumeRecord], for user: UInt32, ignoringCase: Bool
  ) -> [VolumeRecord] {
    func names(_ record: VolumeRecord) -> [String] { [record.title, record.path(in: record.place)] }
    var found = records.filter { names($0).contains { $0.hasSameBytes(as: text) } }
    if found.isEmpty, ignoringCase {
      found = records.filter { names($0).contains { areOneName(Array($0.utf8), Array(text.utf8)) } }
    }
    let own = found.filter { $0.owner == user || user == 0 && $0.owner == nil }
    return own.isEmpty ? found : own
  }
}

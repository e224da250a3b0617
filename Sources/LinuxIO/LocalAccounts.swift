// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import Synchronization

/// The accounts, or the groups, that this machine keeps in a file of its own.
///
/// The name service asks others besides (directory servers, over a network), for as long as they like: that
/// is nothing for a thread that serves everybody. A look here costs a look at the file, which is read again
/// only when it has changed.
package final class LocalAccounts: Sendable {
  /// Corresponds to `passwd(5)` and `group(5)`.
  package static let users = LocalAccounts(path: "/etc/passwd")
  package static let groups = LocalAccounts(path: "/etc/group")

  private struct Entries {
    var stamp: FileStamp?
    var ids: [String: UInt32] = [:]
    var names: [UInt32: String] = [:]
  }
  private let path: String
  private let entries = Mutex(Entries())

  /// Far more than any machine has.
  private static let limit = 64 << 20

  package init(path: String) { self.path = path }

  package func id(of name: String) -> UInt32? { current { $0.ids[name] } }

  package func name(of id: UInt32) -> String? { current { $0.names[id] } }

  private func current<Value: Sendable>(_ find: (Entries) -> Value?) -> Value? {
    guard let file = try? FD.cwd.openFollowing(path, O_RDONLY | O_NONBLOCK),
      let status = try? file.fd.status(), status.isRegular
    else { return nil }
    let stamp = FileStamp(status)
    let known = entries.withLock { entries -> Value?? in
      entries.stamp == stamp ? .some(find(entries)) : .none
    }
    if let known { return known }
    guard let bytes = try? file.fd.readToEnd(limit: Self.limit) else { return nil }
    var read = Self.read(bytes)
    // What has only just been changed may change again without another time.
    read.stamp = stamp.isSettled ? stamp : nil
    let found = find(read)
    let new = read
    entries.withLock { $0 = new }
    return found
  }

  /// Both files have the name first and the number third; of two with the same, the first counts.
  private static func read(_ bytes: [UInt8]) -> Entries {
    var entries = Entries()
    for line in bytes.split(separator: UInt8(ascii: "\n")) {
      let fields = line.split(separator: UInt8(ascii: ":"), maxSplits: 3, omittingEmptySubsequences: false)
      // Lines that begin with a sign are about other services.
      guard fields.count > 2, let first = fields[0].first, first != UInt8(ascii: "+"),
        first != UInt8(ascii: "-"), first != UInt8(ascii: "#"),
        let id = UInt32(String(decoding: fields[2], as: UTF8.self))
      else { continue }
      let name = String(decoding: fields[0], as: UTF8.self)
      if entries.ids[name] == nil { entries.ids[name] = id }
      if entries.names[id] == nil { entries.names[id] = name }
    }
    return entries
  }
}

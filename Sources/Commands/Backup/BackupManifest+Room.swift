// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import JSON
internal import LinuxIO
internal import Policy

// Users can grant very much, and by paths that are very long once they are written as JSON. So each has a
// share of the manifest, and nobody keeps others from being backed up, or what they had from being restored.

extension BackupManifest {
  /// Who has a share of a manifest.
  enum Holder: Hashable {
    /// The apps of all.
    case machine
    case user(UInt32)
    /// A home whose owner is not known, by its name.
    case home([UInt8])
  }

  /// What there was no room for in the share of somebody.
  struct Omission: Equatable {
    let holder: Holder
    var apps = 0
    var containers = 0
    var consents = 0
    var grants = 0
    var entitlements = 0

    /// For people.
    var words: String {
      let who =
        switch holder {
        case .machine: "the machine"
        case .user(let uid): Account.numbered(uid)?.name.sanitized ?? "uid \(uid)"
        case .home(let name): String(decoding: name, as: UTF8.self).sanitized
        }
      let what = [
        (apps, "apps"), (containers, "teams of containers"), (consents, "consents"),
        (grants, "grants"), (entitlements, "entitlements of apps"),
      ].filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
      return
        "the manifest has too little room for all that \(who) has, and lacks \(what.joined(separator: ", ")) "
        + "of it; the files are backed up all the same"
    }
  }

  /// Leaves out what is beyond somebody's share: entitlements before grants, grants before consents, and
  /// those before apps and the teams of containers, without which no data can be restored.
  mutating func reduceToRoom() -> [Omission] {
    let all = self
    var empty = self
    (empty.apps, empty.grants, empty.consents) = ([], [], [])
    empty.containers = containers.map { _ in [] }
    for index in apps.indices { apps[index].entitlements = nil }
    let bare = apps.map(Self.size)
    let texts = zip(all.apps, bare).map { Self.size($0) - $1 }
    let sizes = (consents: consents.map(Self.size), grants: grants.map(Self.size))
    let parts = (containers ?? []).map { (container: $0, size: Self.size($0), holder: all.holder(of: $0)) }
    let holders = all.apps.map { all.holder(of: $0) }

    var needs: [Holder: Int] = [:]
    for (holder, size) in zip(holders, zip(bare, texts)) { needs[holder, default: 0] += size.0 + size.1 }
    for part in parts { needs[part.holder, default: 0] += part.size }
    for (consent, size) in zip(consents, sizes.consents) { needs[.user(consent.user), default: 0] += size }
    for (grant, size) in zip(grants, sizes.grants) { needs[.user(grant.user), default: 0] += size }
    var room = FairShare.shares(of: Self.mostBytes - empty.encoded.count - 1024, among: needs)
    var omissions: [Holder: Omission] = [:]
    func take(_ size: Int, _ holder: Holder, or count: WritableKeyPath<Omission, Int>) -> Bool {
      let left = room[holder, default: 0] - size
      if left >= 0 {
        room[holder] = left
      } else {
        omissions[holder, default: Omission(holder: holder)][keyPath: count] += 1
      }
      return left >= 0
    }

    let kept = zip(holders, bare).map { take($1, $0, or: \.apps) }
    containers = containers.map { _ in
      parts.filter { take($0.size, $0.holder, or: \.containers) }.map(\.container)
    }
    consents = zip(consents, sizes.consents).filter { take($1, .user($0.user), or: \.consents) }.map(\.0)
    grants = zip(grants, sizes.grants).filter { take($1, .user($0.user), or: \.grants) }.map(\.0)
    for index in apps.indices where kept[index] && texts[index] > 0 {
      if take(texts[index], holders[index], or: \.entitlements) {
        apps[index].entitlements = all.apps[index].entitlements
      }
    }
    apps = zip(apps, kept).filter(\.1).map(\.0)
    return omissions.values.inOrder { $0.words < $1.words }
  }

  private func holder(of app: App) -> Holder { app.home.map(holder(ofHome:)) ?? .machine }

  private func holder(of container: Container) -> Holder { holder(ofHome: container.home) }

  private func holder(ofHome home: String) -> Holder {
    let known = homes?.first { $0.name.hasSameBytes(as: home) }
    return known.map { .user($0.user) } ?? .home(Array(home.utf8))
  }

  /// How much of the manifest it takes, as an entry of a list there.
  private static func size(_ entry: some Encodable) -> Int {
    let bytes = (try? JSONText.encode(entry, .pretty)) ?? []
    let lines = bytes.count { $0 == UInt8(ascii: "\n") } + 1
    return bytes.count + 4 * lines + 2
  }
}

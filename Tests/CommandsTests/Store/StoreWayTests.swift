// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A store is not changed by a path that others can have lead to another store.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct StoreWayTests {
  /// What only looks; a command that is missing here is refused.
  private static let looking: Set = [
    "status", "user list", "apps", "info", "ps", "top", "storage", "grants", "volume list", "volume info",
    "network list", "consent list", "system info", "system verify", "type", "types", "defaults read",
    "defaults domains", "trust list", "verify", "log",
  ]
  private static let judging: Set = ["mount", "check", "doctor"]
  /// Words without which a command line is wrong, where any word does not do.
  private static let words = [
    "network join": ["sftp://a@example.org/x"], "removed restore": ["1"], "removed delete": ["1"],
    "grant": ["org.example.x", "/x"], "revoke": ["org.example.x", "/x"], "export": ["x", "x.xcappdata"],
    "consent allow": ["org.example.x", "photos"], "consent deny": ["org.example.x", "photos"],
    "consent reset": ["org.example.x"], "defaults write": ["org.example.x", "key", "value"],
    "volume lock": ["x"], "volume create": ["x", "--encrypted"], "handlers": ["public.jpeg"],
    "path": ["org.example.x", "home"], "open": ["/x"], "update": ["/x"], "trace": ["--", "true"],
    "share": ["Public", "--samba"], "backup run": ["--", "true"],
  ]

  @Test func everyCommandSaysWhatItDoesWithAStore() {
    let commands = Insula.commands.map { $0.description }.filter(\.takesStore)
    #expect(Set(commands.filter { $0.storeUse == .looks }.map(\.name)) == Self.looking)
    #expect(Set(commands.filter { $0.storeUse == .judgesItself }.map(\.name)) == Self.judging)
    #expect(commands.count { $0.storeUse == .changes } > 30)
  }

  private static func line(_ command: CommandDescription, _ store: String) -> [String] {
    let name = command.name.split(separator: " ").map(String.init)
    let option = command.options.first { $0.value == "STORE" }
    let required = command.arguments.filter { $0.isRequired && $0.name != "STORE" }
    let words = Self.words[command.name] ?? required.map { _ in "org.example.x" }
    let named = option.map { ["--\($0.name)", store] } ?? [store]
    return name + named + words
  }

  private static func parts(_ stores: [String], _ names: [String]) throws -> String {
    let places = stores.flatMap { store in names.map { "\(store)/\($0)" } }
    let found = try Program.run(["find"] + places + ["-printf", "%p %T@ %C@ %s %i %m %U\\n"])
    try #require(found.status == 0, "\(found)")
    return found.output
  }

  /// Two who have a link to two stores, and exchange it; whether a daemon has the stores or not.
  @Test(arguments: [false, true], [false, true])
  func noneIsChangedThatIsNamedByAnothersLink(asNobody: Bool, isMounted: Bool) throws {
    let stores = try (0..<2).map { _ in try MountedStore(asNobody: asNobody) }
    if isMounted { for store in stores { try store.mount() } }
    let mounted = stores[0]
    // What is noted in the state of a store that is served is the daemon's to say.
    let parts = isMounted ? ["tree", "keys", "store.plist"] : ["."]
    let before = try Self.parts(stores.map(\.store), parts)
    for uid in [54_321, 54_322] as [uid_t] {
      let place = try TemporaryDirectory()
      try #require(chmod(place.path, 0o755) == 0 && chown(place.path, uid, uid) == 0)
      let link = place.appending("link")
      let said = "belongs to uid \(uid), who can put another store in this one's place"
      for store in stores {
        for target in isMounted ? [store.store, store.point] : [store.store] {
          unlink(link)
          try #require(symlink(target, link) == 0 && lchown(link, uid, uid) == 0)
          for command in Insula.commands.map({ $0.description }) where command.takesStore {
            guard command.storeUse == .changes else { continue }
            let line = Self.line(command, link)
            let refused = try mounted.run(line)
            #expect(refused.status == 7 && refused.errors.contains(said), "\(line): \(refused)")
            #expect(refused.errors.contains("if you mean \(target), name it so"), "\(line): \(refused)")
          }
          // What only looks says so, and looks.
          for line in [["user", "list", "--store", link], ["trust", "list", "--store", link]] {
            let looked = try mounted.run(line)
            #expect(looked.status == 0 && looked.errors.contains(said), "\(line): \(looked)")
          }
        }
      }
    }
    #expect(try Self.parts(stores.map(\.store), parts) == before)
    for store in stores {
      let own = store.temporary.appending("own")
      try #require(symlink(isMounted ? store.point : store.store, own) == 0)
      try #require(lchown(own, asNobody ? 65_534 : 0, 0) == 0)
      let added = try store.run("user", "add", "nobody", "--store", own)
      #expect(added.status == 0 && added.errors.isEmpty, "\(added)")
    }
  }

  /// In a directory with a sticky bit nobody renames what is another's, and everyone renames their own link.
  @Test(arguments: [false, true]) func aLinkIsItsMakersWhereverItLies(asNobody: Bool) throws {
    let mounted = try MountedStore(asNobody: asNobody)
    for uid in [54_321, 54_322] as [uid_t] {
      let link = mounted.temporary.appending("of-\(uid)")
      try #require(symlink(mounted.store, link) == 0 && lchown(link, uid, uid) == 0)
      for line in [["user", "add", "nobody", "--store", link], ["mount", link, mounted.point]] {
        let refused = try mounted.run(line)
        #expect(
          refused.status == 7 && refused.errors.contains("\(link) belongs to uid \(uid)"), "\(refused)")
      }
    }
    #expect(!mounted.isMounted)
    #expect(try mounted.run("user", "add", "nobody", "--store", mounted.store).status == 0)
  }

  /// What root has a user do is that user's own business, and still not a third one's.
  @Test func whatAUserDoesTheirOwnDirectoriesLeadTo() throws {
    let users = try (0..<2).map { _ in try TemporaryAccount() }
    let fixtures = try users.map { user in
      let place = try TemporaryDirectory()
      try #require(
        chmod(place.path, 0o755) == 0 && chown(place.path, user.account.uid, user.account.gid) == 0)
      let own = try MountedStore(owner: user.account, store: place.appending("store"))
      let point = place.appending("point")
      try #require(mkdir(point, 0o700) == 0 && chown(point, user.account.uid, user.account.gid) == 0)
      let mount = try own.run("mount", own.store, point)
      try #require(mount.status == 0, "\(mount)")
      #expect(try own.run("user", "add", user.account.name, "--store", point).status == 0)
      return (user: user.account, own: own, point: point, place: place)
    }
    defer { for fixture in fixtures { _ = try? fixture.own.run("unmount", fixture.point, "--lazy") } }
    func write(as user: String, to point: String) throws -> ProgramResult {
      try Program.run(
        [Program.insula, "defaults", "write", "--user", user, "--store", point, "-g", "Key", "value"])
    }
    for (mine, other) in zip(fixtures, fixtures.reversed()) {
      let written = try write(as: mine.user.name, to: mine.point)
      #expect(written.status == 0, "\(written)")
      let refused = try write(as: mine.user.name, to: other.point)
      #expect(
        refused.status == 7 && refused.errors.contains("\(other.place.path) belongs to \(other.user.name)"),
        "\(refused)")
      // Root itself is nobody's guest.
      let added = try Program.run([Program.insula, "user", "add", "nobody", "--store", mine.point])
      #expect(
        added.status == 7 && added.errors.contains("\(mine.place.path) belongs to \(mine.user.name)"),
        "\(added)")
    }
  }
}

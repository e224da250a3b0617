// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Which store a command means by a mount: never the one that the mount is called after.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct NamedStoreTests {
  private let shop: AppShop
  /// Two users with stores of their own, whose mounts are called like the machine's store.
  private let users: [User]

  private final class User: Sendable {
    let account: TemporaryAccount
    let own: MountedStore

    init(calling name: String) throws {
      account = try TemporaryAccount()
      own = try MountedStore.mounted(owner: account.account, options: "fsname=" + name)
    }

    // An account of which a process runs can't be removed.
    deinit { _ = try? own.unmount() }
  }

  init() throws {
    let shop = try AppShop()
    self.shop = shop
    users = try (0..<2).map { _ in try User(calling: shop.mounted.store) }
    let table = try MountTable.current()
    let sources = users.map { table.top(at: $0.own.point)?.source }
    try #require(sources == [shop.mounted.store, shop.mounted.store])
  }

  private func state() throws -> [String] {
    [
      try shop.mounted.run("trust", "list", "--store", shop.mounted.store).output,
      try shop.mounted.run("user", "list", "--store", shop.mounted.store).output,
      try shop.mounted.run("apps", "--store", shop.mounted.store).output,
      try Program.run(["sqlite3", shop.mounted.store + "/state/insula.db", "SELECT * FROM teams"]).output,
    ]
  }

  /// The attack: root names a user's mount, and the command acts on the machine's store.
  @Test func rootIsNotLedToTheMachinesStore() throws {
    let name = users[0].account.account.name
    try shop.succeed("user", "add", name)
    let app = try shop.make("Notes", version: "1.0")
    try shop.succeed("install", app)
    try shop.succeed("identity", "new", "stranger", "--team", "STRANGER01", store: false)
    let root = shop.mounted.temporary.appending("stranger.pem")
    try shop.succeed("identity", "export", "stranger", "--certificate", root, store: false)
    let before = try state()
    for own in users.map(\.own) {
      for words in [
        ["trust", "list"], ["trust", "add", root], ["trust", "add", root, "--team", "ABCDE12345"],
        ["trust", "remove", "tester"], ["user", "list"], ["user", "add", users[1].account.account.name],
        ["user", "remove", name, "--delete-home"], ["verify", app],
      ] {
        let result = try shop.mounted.run(words + ["--store", own.point])
        #expect(result.status == 7 && result.errors.contains("name the store itself"), "\(words): \(result)")
        #expect(result.errors.contains(own.owner?.name ?? "?"), "\(words): \(result)")
      }
    }
    #expect(try state() == before)
    // Whose mount it is, they may name it, unless they have called it otherwise themselves.
    for own in users.map(\.own) {
      let misled = try own.run("user", "list", "--store", own.point)
      #expect(misled.status == 1 && misled.errors.contains("name the store itself"), "\(misled)")
      let honest = try MountedStore.mounted(owner: own.owner)
      defer { _ = try? honest.unmount() }
      let added = try honest.run("trust", "add", root, "--store", honest.point)
      #expect(added.status == 0, "\(added)")
      let (byMount, byPath) = (
        try honest.run("trust", "list", "--store", honest.point).output,
        try honest.run("trust", "list", "--store", honest.store).output
      )
      #expect(byMount == byPath && byMount.contains("Insula Development"), "\(byMount)")
      #expect(try honest.run("user", "list", "--store", honest.point).status == 0)
    }
    #expect(try state() == before)
    #expect(try shop.mounted.run("trust", "list", "--store", shop.mounted.point).output == before[0])
    #expect(try shop.mounted.run("user", "list", "--store", shop.mounted.point).output.contains(name))
  }

  /// The attack: what root has somebody do in the machine's store fails while others call theirs like it.
  @Test func commandsForOthersFindTheMachinesMount() throws {
    let name = users[0].account.account.name
    try shop.succeed("user", "add", name)
    try shop.succeed("install", try shop.make("Notes", version: "1.0"))
    try shop.succeed("path", "org.example.notes", "home", "--user", name)
    for (directory, store) in [("one", shop.mounted.store), ("other", shop.mounted.point)] {
      let package = try shop.mounted.temporary.makeDirectory(directory, mode: 0o777)
      let result = try shop.mounted.run(
        "export", "org.example.notes", package + "/Notes.xcappdata", "--user", name, "--store", store)
      #expect(result.status == 0, "\(store): \(result)")
    }
  }

  /// A mount that is dead is found by the path of its store, and no other one that is called so.
  @Test func unmountTakesTheOwnersMount() throws {
    try shop.mounted.killDaemon()
    let result = try shop.mounted.run("unmount", shop.mounted.store)
    #expect(result.status == 0, "\(result)")
    #expect(!shop.mounted.isMounted && users.map(\.own.isMounted) == [true, true])
    // Now there is none.
    #expect(try shop.mounted.run("unmount", shop.mounted.store).status == 6)
    #expect(users.map(\.own.isMounted) == [true, true])
    // Without its daemon, a mount says nothing that can be relied on.
    try shop.mounted.mount()
    try shop.mounted.killDaemon()
    let silent = try shop.mounted.run("trust", "list", "--store", shop.mounted.point)
    #expect(silent.status == 1 && silent.errors.contains("name the store itself"), "\(silent)")
    #expect(try shop.mounted.run("unmount", shop.mounted.point).status == 0)
  }

  /// In another mount namespace another store may be mounted where the daemon of this one has its mount.
  @Test func homesAreReachedThroughTheStoresOwnMount() throws {
    let other = try MountedStore.mounted()
    let script = #"mount --bind "$1" "$2" && exec "$3" user add "$4" --store "$5""#
    let result = try Program.run([
      "timeout", "100", "unshare", "-m", "sh", "-c", script, "sh", other.point, shop.mounted.point,
      Program.insula, users[0].account.account.name, shop.mounted.store,
    ])
    #expect(result.status == 3 && result.errors.contains("not visible from here"), "\(result)")
    for store in [other.store, shop.mounted.store] {
      let homes = try shop.mounted.run("user", "list", "--store", store)
      #expect(homes.status == 0 && homes.output.contains("no homes yet"), "\(homes)")
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
@testable internal import Store
internal import TestSupport
internal import Testing

/// The removal of a home, or of an app in it, that ends in the middle.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct HalfRemovedHomeTests {
  private static let app = "org.example.notes"

  private let shop: AppShop
  private let accounts: [TemporaryAccount]

  init() throws {
    shop = try AppShop()
    accounts = [try TemporaryAccount(), try TemporaryAccount()]
    let bundles = [
      try shop.make("Notes", version: "1.0", in: "a"), try shop.make("Other", version: "1.0", in: "b"),
    ]
    for account in accounts {
      try shop.succeed("user", "add", account.account.name)
      for bundle in bundles { try shop.succeed("install", bundle, "--user", account.account.name) }
    }
  }

  private func backing(_ account: TemporaryAccount, _ path: String) -> String {
    shop.mounted.backing("Users/\(account.account.name)\(path)")
  }

  private func sql(_ text: String) throws -> String {
    let command = ["sqlite3", "-cmd", ".timeout 20000", shop.mounted.store + "/state/insula.db", text]
    let result = try Program.run(command)
    try #require(result.status == 0, "\(result.errors)")
    return result.output
  }

  private func remove(_ account: TemporaryAccount) throws -> ProgramResult {
    try shop.mounted.run(
      "user", "remove", account.account.name, "--delete-home", "--store", shop.mounted.store)
  }

  /// Has the machine's kernel let nobody change or remove something, root included.
  private func protect(_ path: String) throws {
    try #require(try Program.run(["chattr", "+i", path]).status == 0)
  }

  private func unprotect(_ path: String) { _ = try? Program.run(["chattr", "-i", path]) }

  /// Somebody has removed bundles behind the daemon's back: once their apps are uninstalled, or forgotten,
  /// their names are free.
  @Test func namesOfBundlesThatAreGoneAreFree() throws {
    for account in accounts {
      for name in ["Notes", "Other"] {
        let bundle = backing(account, "/Applications/\(name).app")
        try #require(try Program.run(["rm", "-r", bundle]).status == 0)
      }
    }
    let name = accounts[0].account.name
    // One of them is noted for another number, as after usermod(8).
    _ = try sql("UPDATE apps SET user = 4000000001 WHERE path = 'Users/\(name)/Applications/Other.app'")
    try shop.succeed("uninstall", Self.app, "--user", name)
    #expect(try sql("SELECT count(*) FROM apps") == "2\n")
    for (account, expected) in zip(accounts, [0, EIO]) {
      let client = try Client(uid: account.account.uid, gid: account.account.gid)
      for app in ["Notes", "Other"] {
        let path = shop.mounted.path("Users/\(account.account.name)/Applications/\(app).app")
        let errno = try client.errno("mkdir", path, "448")
        #expect(errno == expected, "\(path)")
      }
    }
  }

  /// An app that can't be removed ends the removal of its home: what was removed by then is said, and the
  /// next try goes on.
  @Test(arguments: [true, false]) func aRemovalThatEndedGoesOn(isMounted: Bool) throws {
    let (account, name) = (accounts[0], accounts[0].account.name)
    if !isMounted { try shop.succeed("unmount") }
    let bundle = backing(account, "/Applications/Other.app")
    try protect(bundle)
    defer { unprotect(bundle) }
    let home = backing(account, "")
    let before = try Program.run(["stat", "-c", "%U %a", home]).output
    let refused = try remove(account)
    #expect(
      refused.status == 7 && refused.errors.contains("the home of \(name) is still there"), "\(refused)")
    #expect(refused.errors.contains(Self.app) && refused.errors.contains("again to go on"), "\(refused)")
    #expect(try Program.run(["stat", "-c", "%U %a", home]).output == before)
    #expect(try sql("SELECT count(*) FROM apps") == "3\n")
    unprotect(bundle)
    let removed = try remove(account)
    #expect(removed.status == 0, "\(removed)")
    #expect(try sql("SELECT count(*) FROM apps; SELECT count(*) FROM intents") == "2\n0\n")
    #expect(
      try Set(shop.mounted.temporary.names(in: "store/tree/Users")) == ["Shared", accounts[1].account.name])
  }

  /// A home that can't be taken from its place is its owner's afterwards as it was before.
  @Test func aHomeThatCannotBeTakenIsItsOwners() throws {
    let (account, name) = (accounts[0], accounts[0].account.name)
    let root = try TemporaryDirectory.open(shop.mounted.point)
    let homes = try Homes(tree: root.fd, path: shop.mounted.point, mode: .system, isMounted: true)
    let home = shop.mounted.path("Users/\(name)")
    func state() throws -> String {
      try Program.run(["stat", "-c", "%a %u %g", home]).output + shop.mounted.run("acl", home).output
    }
    let before = try state()
    // What stands where it would go can't be removed.
    let target = shop.mounted.backing("Users/.\(name).removed-\(ProcessID.own)")
    try #require(try Program.run(["mkdir", "-p", target + "/kept"]).status == 0)
    try protect(target + "/kept")
    defer { unprotect(target + "/kept") }
    for closes in [false, true] {
      let closed = try closes ? homes.close(name) : nil
      #expect((closed != nil) == closes)
      #expect(throws: StoreError.self) { try homes.remove(name, closed: closed) }
      #expect(try state() == before, "\(closes)")
    }
    let client = try Client(uid: account.account.uid, gid: account.account.gid)
    #expect(try client.errno("mkdir", home + "/Documents/new", "448") == 0)
  }

  /// A home that is taken from its place and can't be deleted is none any more: nothing of its owner's counts
  /// for the next holder of the number.
  @Test(arguments: [true, false]) func whatIsLeftOfAHomeKeepsNoDecisions(isMounted: Bool) throws {
    try shop.succeed("install", try shop.make("Third", version: "1.0", in: "c"))
    for account in accounts {
      let denied = try shop.run(as: account, ["consent", "deny", "org.example.third", "photos"])
      try #require(denied.status == 0, "\(denied)")
    }
    if !isMounted { try shop.succeed("unmount") }
    let file = backing(accounts[0], "/Documents/kept")
    try #require(try Program.run(["touch", file]).status == 0)
    try protect(file)
    defer {
      let users = shop.mounted.backing("Users")
      _ = try? Program.run(["chattr", "-R", "-i", users])
    }
    let removed = try remove(accounts[0])
    #expect(removed.status == 7 && removed.errors.contains("remove all of what was the home"), "\(removed)")
    #expect(access(backing(accounts[0], ""), F_OK) == -1)
    for table in ["consents", "apps", "containers"] {
      #expect(try sql("SELECT count(*) FROM \(table) WHERE user = \(accounts[0].account.uid)") == "0\n")
    }
    #expect(try sql("SELECT count(*) FROM consents") == "1\n")
  }
}

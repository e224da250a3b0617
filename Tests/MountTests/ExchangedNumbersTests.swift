// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Two accounts have exchanged their numbers: neither gets what the other one has decided.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct ExchangedNumbersTests {
  private static let app = "org.example.notes"

  private let shop: AppShop
  private let anna: TemporaryAccount
  private let ben: TemporaryAccount

  /// Anna allows what Ben denies, and both have a container.
  init() throws {
    shop = try AppShop()
    (anna, ben) = (try TemporaryAccount(), try TemporaryAccount())
    try shop.succeed("install", try shop.make("Notes", version: "1.0"))
    for (account, decision) in [(anna, "allow"), (ben, "deny")] {
      try shop.succeed("user", "add", account.account.name)
      for words in [["consent", decision, Self.app, "contacts"], ["path", Self.app, "home"]] {
        let result = try shop.run(as: account, words)
        try #require(result.status == 0, "\(words): \(result.errors)")
      }
    }
  }

  /// As whoever has the number that an account had in the beginning.
  private func state(_ account: TemporaryAccount) throws -> ProgramResult {
    try shop.run(as: account, "consent", "list", Self.app, "contacts")
  }

  private func exchange() throws {
    try anna.exchangeNumbers(with: ben)
    for (account, other) in [(anna, ben), (ben, anna)] {
      let home = shop.mounted.backing("Users/\(account.account.name)")
      let from = "--from=\(account.account.uid)"
      try #require(try Program.run(["chown", "-R", from, "\(other.account.uid)", home]).status == 0)
    }
  }

  private func expectExchanged() throws {
    // Ben has the number that Anna had.
    let (his, hers) = (try state(anna), try state(ben))
    #expect(his.status == 0 && his.output.contains("denied"), "\(his.output)\(his.errors)")
    #expect(hers.status == 0 && hers.output.contains("authorized"), "\(hers.output)\(hers.errors)")
    let rows = try Program.run([
      "sqlite3", shop.mounted.store + "/state/insula.db",
      "SELECT user || ' ' || path FROM containers WHERE kind = 'data' ORDER BY user",
    ])
    let expected = [(anna, ben), (ben, anna)].map { number, owner in
      let home = "Users/\(owner.account.name)"
      return "\(number.account.uid) \(home)/Library/Containers/\(Self.app)\n"
    }
    #expect(rows.output == expected.sorted().joined(), "\(rows.output)")
    try shop.expectNothingToComplainAbout()
  }

  @Test func decisionsFollowAtTheNextMount() throws {
    try shop.succeed("unmount")
    try exchange()
    try shop.mounted.mount()
    try expectExchanged()
  }

  /// Until then nobody sees, uses or changes what the other one has decided.
  @Test func decisionsCountForNobodyUntilTheNextWorker() throws {
    try exchange()
    for words in [
      ["consent", "list", Self.app, "contacts"], ["consent", "allow", Self.app, "contacts"], ["grants"],
      ["run", Self.app], ["log"],
    ] {
      let refused = try shop.run(as: anna, words)
      #expect(
        refused.status == 1 && refused.errors.contains("'insula restart'"), "\(words): \(refused.errors)")
    }
    try shop.succeed("restart", shop.mounted.store, store: false)
    try expectExchanged()
  }

  /// The attack: root removes the home of one of them before the numbers are followed.
  ///
  /// What was removed from it goes with it, and what the other one has decided under that number stays.
  @Test(arguments: [false, true]) func whatWasRemovedGoesWithItsHome(haveBothTheApp: Bool) throws {
    try shop.succeed("uninstall", Self.app)
    // With an app goes what was decided about it.
    try shop.succeed("install", try shop.make("Notes", version: "1.0", in: "again"))
    for (account, decision) in [(anna, "allow"), (ben, "deny")] {
      let decided = try shop.run(as: account, "consent", decision, Self.app, "contacts")
      try #require(decided.status == 0, "\(decided)")
    }
    for account in haveBothTheApp ? [anna, ben] : [anna] {
      let made = try shop.run(as: account, "path", Self.app, "home")
      try #require(made.status == 0, "\(made)")
    }
    try exchange()
    // The mount may know the owner that the home had before.
    for (account, other) in [(anna, ben), (ben, anna)] {
      try #require(chown(shop.mounted.path("Users/\(account.account.name)"), other.account.uid, .max) == 0)
    }
    let words = ["user", "remove", anna.account.name, "--delete-home", "--store", shop.mounted.store]
    if haveBothTheApp {
      // Each stands in the other's way.
      let refused = try shop.mounted.run(words)
      #expect(refused.status == 1 && refused.errors.contains("'insula restart'"), "\(refused)")
      #expect(access(shop.mounted.backing("Users/\(anna.account.name)/Library"), F_OK) == 0)
      try shop.succeed("restart", shop.mounted.store, store: false)
    }
    let gone = try shop.mounted.run(words)
    try #require(gone.status == 0, "\(gone)")
    func sql(_ text: String) throws -> String {
      try Program.run(["sqlite3", shop.mounted.store + "/state/insula.db", text]).output
    }
    let rows = "SELECT count(*) FROM removed WHERE deleting = 0 AND path LIKE 'Users/"
    #expect(try sql("\(rows)\(anna.account.name)/%'") == "0\n")
    #expect(try sql("\(rows)\(ben.account.name)/%'") == "1\n")
    let number = (haveBothTheApp ? anna : ben).account.uid
    #expect(try sql("SELECT allowed FROM consents WHERE user = \(number)") == "0\n")
    let left = try sql(
      "SELECT user, kind, doomed, path FROM containers WHERE path LIKE 'Users/\(anna.account.name)/%'")
    #expect(left == "", "\(left)")
    try shop.succeed("restart", shop.mounted.store, store: false)
    // Ben has the number that Anna had.
    let his = try shop.run(as: anna, "removed", "list", "--json")
    #expect(his.output.contains(ben.account.name) && !his.output.contains(anna.account.name), "\(his)")
    #expect(try sql("SELECT allowed FROM consents WHERE user = \(anna.account.uid)") == "0\n")
  }

  /// What was removed stays with its home: nobody gets the other one's, and root removes with a home nothing
  /// of the other one.
  @Test(arguments: [false, true]) func whatWasRemovedStaysWithItsHome(removingBens: Bool) throws {
    let documents = "Library/Containers/\(Self.app)/Data/Documents"
    for account in [anna, ben] {
      let letter = shop.mounted.backing("Users/\(account.account.name)/\(documents)/letter")
      try #require(
        try Program.run(["sh", "-c", "echo of \(account.account.name) >\"$1\"", "sh", letter]).status == 0)
      try #require(chown(letter, account.account.uid, account.account.gid) == 0)
    }
    try shop.succeed("uninstall", Self.app)
    let sql = "SELECT id FROM removed WHERE path LIKE 'Users/\(anna.account.name)/%'"
    let hers = try Program.run(["sqlite3", shop.mounted.store + "/state/insula.db", sql]).output
    let number = String(hers.prefix { $0 != "\n" })
    try #require(!number.isEmpty)
    try exchange()
    // Ben has the number that Anna had.
    let list = try shop.run(as: anna, "removed", "list", "--json")
    #expect(!list.output.contains(anna.account.name), "\(list)")
    for words in [["restore", number], ["delete", number]] {
      let refused = try shop.run(as: anna, ["removed"] + words)
      #expect(refused.status == 1, "\(refused)")
    }
    _ = try shop.run(as: anna, "purge", "--to", "100%")
    if removingBens { try shop.succeed("user", "remove", ben.account.name, "--delete-home") }
    try shop.succeed("restart", shop.mounted.store, store: false)
    let his = try shop.run(as: anna, "removed", "list", "--json")
    let left = removingBens ? [] : [ben.account.name]
    #expect(his.status == 0 && !his.output.contains(anna.account.name), "\(his)")
    #expect(left.allSatisfy { his.output.contains($0) }, "\(his)")
    let restored = try shop.run(as: ben, "removed", "restore", number)
    #expect(restored.status == 0, "\(restored)")
    let letter = shop.mounted.path("Users/\(anna.account.name)/\(documents)/letter")
    let become = ["setpriv", "--reuid=\(ben.account.uid)", "--regid=\(ben.account.gid)", "--clear-groups"]
    let read = try Program.run(become + ["cat", letter])
    #expect(read.output == "of \(anna.account.name)\n", "\(read)")
  }
}

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
}

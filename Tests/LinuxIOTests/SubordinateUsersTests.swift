// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
@testable internal import LinuxIO
internal import TestSupport
internal import Testing

/// Whose the ids are that accounts have besides their own.
@Suite struct SubordinateUsersTests {
  private let temporary: TemporaryDirectory

  init() throws { temporary = try TemporaryDirectory() }

  private func users(_ text: String) throws -> SubordinateUsers {
    let accounts = LocalAccounts(
      path: try temporary.write(
        "root:x:0:0::/:/bin/sh\nada:x:1001:1001::/:/bin/sh\nbob:x:1002:1002::/:/bin/sh\n", to: "passwd"))
    return SubordinateUsers(path: try temporary.write(text, to: "subuid"), accounts: accounts)
  }

  @Test func idsAreTheirAccounts() throws {
    let users = try users("bob:165536:65536\nada:100000:65536\n1007:300000:10\n")
    for (id, account) in [
      (0, 0), (1001, 1001), (99_999, 99_999), (100_000, 1001), (165_535, 1001), (165_536, 1002),
      (231_071, 1002), (231_072, 231_072), (300_009, 1007), (300_010, 300_010),
      (4_294_967_295, 4_294_967_295),
    ] as [(UInt32, UInt32)] {
      #expect(users.account(of: id) == account)
    }
  }

  /// Containers that root runs are one user, but not root; so is whoever has no account any more.
  @Test func nobodyHasWhatIsRoots() throws {
    let users = try users("root:100000:1000\n0:200000:1000\ngone:400000:1000\n")
    #expect(users.account(of: 100_999) == 100_000 && users.account(of: 200_001) == 200_000)
    #expect(users.account(of: 400_500) == 400_000)
  }

  @Test func linesThatSayNothingArePassedOver() throws {
    let users = try users(
      "\nada\nada:x:5\nada:5:0\nada:-1:5\nada:4294967290:4294967295\nada:7:99999999999\nada:1:2:3\n"
    )
    #expect(users.account(of: 4_294_967_295) == 1001 && users.account(of: 4_294_967_289) == 4_294_967_289)
    #expect([1, 5, 7, 8].allSatisfy { users.account(of: $0) == $0 })
    #expect(SubordinateUsers(path: "/nonexistent").account(of: 100_000) == 100_000)
  }

  @Test func fileIsReadAgainWhenItHasChanged() throws {
    let users = try users("ada:100000:10\n")
    #expect(users.account(of: 100_005) == 1001)
    _ = try temporary.write("bob:100000:10\n", to: "subuid")
    #expect(eventually { users.account(of: 100_005) == 1002 })
    _ = try temporary.write("", to: "subuid")
    #expect(eventually { users.account(of: 100_005) == 100_005 })
  }

  /// useradd(8) gives an account such ids where the machine does so at all.
  @Test(.enabled(if: getuid() == 0)) func accountAndItsIDsHaveOneShare() throws {
    let temporary = try TemporaryAccount()
    guard let first = temporary.firstAdditionalID else { return }
    #expect(eventually { Payer(user: first + 7) == Payer(user: temporary.account.uid) })
    let budget = Budget(Budget.Limits(descriptors: 1 << 16))
    while budget.takeQuietly(.locks, 100, by: Payer(user: first + 1)) {}
    // Under however many of their ids they come, they have had their share.
    #expect((2..<100).allSatisfy { !budget.takeQuietly(.locks, 100, by: Payer(user: first + $0)) })
    #expect(budget.takeQuietly(.locks, 1000, by: Payer(user: 65_534)))
  }
}

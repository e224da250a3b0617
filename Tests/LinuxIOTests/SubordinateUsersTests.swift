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

  private static let passwd =
    "root:x:0:0::/:/bin/sh\nada:x:1001:1001::/:/bin/sh\nbob:x:1002:1002::/:/bin/sh\n"

  private func users(
    _ text: String, passwd: String = passwd,
    nameService: @escaping @Sendable (UInt32) -> Bool = { _ in false }
  ) throws -> SubordinateUsers {
    let accounts = LocalAccounts(path: try temporary.write(passwd, to: "passwd"))
    return SubordinateUsers(
      path: try temporary.write(text, to: "subuid"), accounts: accounts,
      numbers: AccountNumbers(local: accounts, nameService: nameService))
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

  /// Whoever gives out numbers need not know of the ranges, and useradd(8) knows not of theirs.
  @Test func accountInARangeIsItself() throws {
    let users = try users(
      "bob:165536:65536\nada:100000:65536\n",
      passwd: Self.passwd + "cleo:x:100500:1::/:/bin/sh\ndan:x:165999:1::/:/bin/sh\n")
    for (id, account) in [
      (100_499, 1001), (100_500, 100_500), (100_501, 1001), (165_998, 1002), (165_999, 165_999),
    ] as [(UInt32, UInt32)] {
      #expect(users.account(of: id) == account)
    }
    #expect(users.holder(of: 100_500) == 1001 && users.holder(of: 165_999) == 1002)
    // An owner of a home is one too, whatever the machine says.
    users.numbers.note(owners: [100_600, 165_600])
    #expect(users.account(of: 100_600) == 100_600 && users.account(of: 165_600) == 165_600)
    #expect(users.account(of: 100_601) == 1001)
    // One that comes later is known soon.
    _ = try temporary.write(Self.passwd + "eve:x:100700:1::/:/bin/sh\n", to: "passwd")
    #expect(eventually { users.account(of: 100_700) == 100_700 })
  }

  private struct NameService: Sendable {
    var isOpen = false
    var asked: [UInt32] = []
  }

  /// A directory server may take its time: nobody waits for it who only counts, and each number is asked for
  /// once.
  @Test func nameServiceKeepsNobodyWaiting() throws {
    let service = Condition(NameService())
    defer { service.change { $0.isOpen = true } }
    let users = try users("bob:165536:65536\nada:100000:65536\n") { user in
      service.change { $0.asked.append(user) }
      service.wait(until: { $0.isOpen })
      return user % 100 == 0
    }
    let begin = monotonicNanoseconds()
    for _ in 0..<1000 {
      #expect(users.account(of: 100_500) == 1001 && users.account(of: 165_600) == 1002)
      #expect(users.account(of: 100_501) == 1001)
    }
    #expect(monotonicNanoseconds() - begin < 20_000_000_000)
    #expect(users.account(of: 1001) == 1001 && users.account(of: 99_000) == 99_000)
    service.change { $0.isOpen = true }
    #expect(eventually { users.account(of: 100_500) == 100_500 && users.account(of: 165_600) == 165_600 })
    #expect(eventually { service.withLock { $0.asked.count } == 3 })
    #expect(users.account(of: 100_501) == 1001)
    // Who can wait need not ask twice.
    #expect(users.numbers.find(165_700) && users.account(of: 165_700) == 165_700)
    #expect(!users.numbers.find(100_501))
    #expect(Set(service.withLock { $0.asked }) == [100_500, 165_600, 100_501, 165_700])
  }

  /// An account can act under each of its numbers: however many there are, one that is an account is found.
  @Test func manyNumbersHideNoAccount() throws {
    let users = try users("ada:100000:200000\n") { $0 == 290_000 }
    for id in UInt32(100_000)..<250_000 { _ = users.account(of: id) }
    #expect(eventually { users.account(of: 290_000) == 290_000 })
    #expect(users.account(of: 100_001) == 1001)
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
    // Not so an account whose number lies among them.
    let other = try TemporaryAccount(number: first + 500)
    #expect(eventually { Payer(user: first + 500) == Payer(user: other.account.uid) })
    #expect(eventually { Payer(user: other.account.uid).user == first + 500 })
    #expect(budget.takeQuietly(.locks, 1000, by: Payer(user: other.account.uid)))
  }
}

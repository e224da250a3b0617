// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Synchronization
internal import Testing

/// What users may have of what all share.
struct BudgetTests {
  private static let alice = Payer(user: 1000)
  private static let bob = Payer(user: 1001)

  private func budget(
    _ kind: Budget.Kind, _ pool: Int, daemonUser: UInt32 = 0,
    say: @escaping @Sendable (String) -> Void = { _ in }
  ) -> Budget {
    var limits = Budget.Limits(descriptors: 1024)
    limits[kind] = pool
    return Budget(limits, daemonUser: daemonUser, say: say)
  }

  /// Takes until it is refused; gives how many there were, and the errno.
  private func exhaust(_ budget: Budget, _ kind: Budget.Kind, _ payer: Payer) -> (count: Int, errno: Errno?) {
    for count in 0..<1_000_000 {
      do throws(Errno) {
        try budget.take(kind, by: payer)
      } catch {
        return (count, error)
      }
    }
    return (1_000_000, nil)
  }

  @Test(arguments: Budget.Kind.allCases.filter { !$0.isEverybodys })
  func oneUserLeavesMostToOthers(kind: Budget.Kind) {
    let budget = budget(kind, 1600)
    let first = exhaust(budget, kind, Self.alice)
    #expect(first.errno == kind.errno && first.count == 300)
    // Whoever comes later gets nearly as much, and there is some for a twentieth user.
    #expect(exhaust(budget, kind, Self.bob).count == 240)
    for user in UInt32(0)..<17 { _ = exhaust(budget, kind, Payer(user: 2000 + user)) }
    #expect(exhaust(budget, kind, Payer(user: 3000)).count > 0)
    // Root has what is left, the reserve with it.
    #expect(exhaust(budget, kind, Payer(user: 0)).count >= 100)
    #expect(budget.total(kind) == 1600)
  }

  @Test func everybodyHasNamesOfTheirOwn() {
    let budget = budget(.grantedNames, 1600)
    for user: UInt32 in [0, 1000, 1001, 1002] {
      let had = exhaust(budget, .grantedNames, Payer(user: user))
      #expect(had.count == 1600 && had.errno == .EDQUOT)
    }
  }

  @Test(arguments: [0, 1000] as [UInt32])
  func nothingMoreIsNeverTooMuch(user: UInt32) {
    let budget = budget(.memory, 100)
    // Some are charged whether or not there is any left.
    budget.charge(.memory, 200, to: Payer(user: user))
    #expect(budget.takeQuietly(.memory, 0, by: Payer(user: user)))
    #expect(!budget.takeQuietly(.memory, 1, by: Payer(user: user)))
  }

  @Test func everythingIsGivenBack() throws {
    let budget = budget(.locks, 1600)
    for round in 0..<3 {
      #expect(exhaust(budget, .locks, Self.alice).count == 300, "round \(round)")
      budget.give(.locks, 300, by: Self.alice)
      #expect(budget.total(.locks) == 0 && budget.count(.locks, of: Self.alice) == 0)
    }
    try budget.take(.locks, 300, by: Self.alice)
    // What can't be refused is counted all the same.
    budget.charge(.locks, 5, to: Self.alice)
    #expect(throws: Errno.ENOLCK) { try budget.take(.locks, by: Self.alice) }
    budget.give(.locks, 305, by: Self.alice)
    #expect(budget.total(.locks) == 0)
  }

  @Test func appHasHalfOfWhatItsUserMayHave() throws {
    let budget = budget(.locks, 1600)
    let app = Payer(user: 1000, view: 7)
    #expect(exhaust(budget, .locks, app).count < 180)
    #expect(exhaust(budget, .locks, Self.alice).count > 100)
    #expect(exhaust(budget, .locks, Self.bob).count > 200)
    // Many apps have no more than the user.
    let apps = (UInt32(10)..<20).map { exhaust(budget, .locks, Payer(user: 1000, view: $0)).count }
    #expect(apps == Array(repeating: 0, count: 10))
    let own = self.budget(.locks, 1600, daemonUser: 1000)
    #expect(exhaust(own, .locks, app).count == 800)
    #expect(exhaust(own, .locks, Self.alice).count == 800)
  }

  @Test func refusalIsLoggedOnceAMinuteAndCounted() {
    let lines = Mutex<[String]>([])
    let budget = budget(.locks, 1600) { line in lines.withLock { $0.append(line) } }
    for _ in 0..<3 { _ = exhaust(budget, .locks, Self.alice) }
    _ = exhaust(budget, .locks, Self.bob)
    // The minute may have ended in between.
    let own = lines.withLock { $0 }.filter { $0.contains("user 1000 ") }
    #expect((1...2).contains(own.count) && own.allSatisfy { $0.contains("locks") })
    #expect(budget.refusals.map(\.user) == [1000, 1001] && budget.refusals.map(\.count) == [3, 1])
    for user in UInt32(0)..<100_000 { budget.refuse(.locks, user) }
    #expect(lines.withLock { $0 }.count <= 180 && budget.refusals.count <= 1024)
  }

  @Test func manyUsersAreKeptApart() throws {
    let budget = budget(.locks, 1 << 30)
    let users = (UInt32(0)..<20_000).map { $0 &* 65_537 }
    for user in users { try budget.take(.locks, Int(user % 7) + 1, by: Payer(user: user)) }
    // Those who have nothing any more make room, and nobody else's count changes.
    for user in users where user % 3 == 0 { budget.give(.locks, Int(user % 7) + 1, by: Payer(user: user)) }
    for user in UInt32(3_000_000_000)..<3_000_020_000 { try budget.take(.locks, by: Payer(user: user)) }
    let wrong = users.filter {
      budget.count(.locks, of: Payer(user: $0)) != ($0 % 3 == 0 ? 0 : Int($0 % 7) + 1)
    }
    #expect(wrong.isEmpty)
    let late = UInt32(3_000_000_000)..<3_000_020_000
    #expect(late.allSatisfy { budget.count(.locks, of: Payer(user: $0)) == 1 })
  }

  @Test func countsAreRightUnderManyThreads() throws {
    let budget = budget(.openFiles, 1 << 20)
    let threads = try (0..<4).map { number in
      try JoinableThread(name: "paying") {
        for round in UInt32(0)..<20_000 {
          let payer = Payer(user: 1000 + round % 200, view: round % 3)
          guard (try? budget.take(.openFiles, number + 1, by: payer)) != nil else { continue }
          budget.give(.openFiles, number + 1, by: payer)
        }
      }
    }
    for thread in threads { thread.join() }
    #expect(budget.total(.openFiles) == 0)
    #expect((UInt32(1000)..<1200).allSatisfy { budget.count(.openFiles, of: Payer(user: $0)) == 0 })
  }
}

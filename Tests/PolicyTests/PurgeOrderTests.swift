// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import TestSupport
internal import Testing

@Suite struct PurgeOrderTests {
  private func candidate(
    _ app: String, of user: UInt32 = 1, _ place: PurgePlace, ran lastRun: Int64?
  ) throws -> PurgeCandidate {
    PurgeCandidate(try #require(AppIdentifier(app)), of: user, place, lastRun: lastRun)
  }

  @Test func temporaryFilesGoBeforeCachesAndTheLongestUnusedFirst() throws {
    let expected = try [
      candidate("never", .tmp, ran: nil), candidate("old", .tmp, ran: 5), candidate("new", .tmp, ran: 9),
      candidate("never", .caches, ran: nil), candidate("a", .caches, ran: 5),
      candidate("b", of: 1, .caches, ran: 5), candidate("b", of: 2, .caches, ran: 5),
      candidate("new", .caches, ran: 9),
    ]
    for seed in 0..<20 {
      var shuffled = expected
      var generator = SeededRandom(seed: UInt64(seed))
      shuffled.shuffle(using: &generator)
      #expect(shuffled.inPurgeOrder() == expected)
    }
  }

  @Test func placesAreThoseOfEveryContainer() {
    #expect(PurgePlace.allCases.map(\.path) == ["Data/tmp", "Data/Library/Caches"])
    for place in PurgePlace.allCases { #expect(ContainerLayout.directories(of: .data).contains(place.path)) }
  }
}

@Suite struct FreeSpaceGoalTests {
  @Test(arguments: [
    ("20%", FreeSpaceGoal.percent(20)), ("1%", .percent(1)), ("99%", .percent(99)), ("5G", .bytes(5 << 30)),
    ("5GiB", .bytes(5 << 30)), ("512m", .bytes(512 << 20)), ("1000", .bytes(1000)), ("2T", .bytes(2 << 40)),
  ])
  func goalsAreRead(text: String, goal: FreeSpaceGoal) throws {
    #expect(try FreeSpaceGoal(text) == goal)
  }

  @Test(arguments: [
    ("", "it is neither"), ("0%", "from 1% to 99%"), ("100%", "from 1% to 99%"), ("%", "neither a share"),
    ("5X", "neither a share"), ("-5G", "neither a share"), ("0", "not a size that a disk can have"),
    ("9223372036854775807T", "not a size that a disk can have"), ("5 G", "neither a share"),
    ("99999999999999999999999999", "it is neither"), ("٥%", "neither a share"),
    ("5G\u{202e}", "neither a share"),
  ])
  func whatIsNoGoalIsRefusedInWords(text: String, words: String) {
    #expect {
      try FreeSpaceGoal(text)
    } throws: { error in
      let reason = (error as? LimitRefusal)?.reason ?? ""
      return reason.contains(words == "it is neither" && text.isEmpty ? "neither" : words)
        && !reason.contains("\u{202e}")
    }
  }

  @Test(
    arguments: [
      (FreeSpaceGoal.percent(20), 1000, 100, 100), (.percent(20), 1000, 200, 0), (.percent(20), 1000, 900, 0),
      (.percent(99), Int64.max, 0, Int64.max / 100 * 99 + 6), (.bytes(500), 1000, 100, 400),
      (.bytes(500), 1000, -5, 500), (.bytes(500), 0, 600, 0),
    ] as [(FreeSpaceGoal, Int64, Int64, Int64)])
  func missingIsWhatIsNotFreeYet(goal: FreeSpaceGoal, total: Int64, free: Int64, missing: Int64) {
    #expect(goal.missing(on: DiskSpace(total: total, free: free)) == missing)
  }
}

@Suite struct PurgeRuleTests {
  private func disk(_ total: Int64, free: Int64) -> DiskSpace { DiskSpace(total: total, free: free) }

  /// Five percent of a small disk, two gibibytes of a large one, and twice as much afterwards.
  @Test func usualRuleIsForSmallDisksAndLargeOnes() {
    let small: Int64 = 20 << 30
    #expect(PurgeRule.usual.goal(on: disk(small, free: small / 20)) == nil)
    #expect(PurgeRule.usual.goal(on: disk(small, free: small / 20 - 1)) == .bytes(small / 10))
    let large: Int64 = 4 << 40
    #expect(PurgeRule.usual.goal(on: disk(large, free: 2 << 30)) == nil)
    #expect(PurgeRule.usual.goal(on: disk(large, free: 2 << 30 - 1)) == .bytes(4 << 30))
    #expect(PurgeRule.usual.goal(on: disk(0, free: 0)) == nil)
  }

  @Test func rulesAreReadAndKept() throws {
    let rule = try PurgeRule("5%:10%")
    #expect(rule == .below(.percent(5), until: .percent(10)))
    #expect(rule.goal(on: disk(1000, free: 50)) == nil)
    #expect(rule.goal(on: disk(1000, free: 49)) == .percent(10))
    #expect(try PurgeRule("2G:10%") == .below(.bytes(2 << 30), until: .percent(10)))
    for text in ["5%:6%", "1000:1001", "1%:99%", "1G:2G"] { _ = try PurgeRule(text) }
    // Where it would end before it begins, it does nothing.
    #expect(try PurgeRule("2G:10%").goal(on: disk(4 << 30, free: 1 << 30)) == nil)
    #expect(PurgeRule.never.goal(on: disk(1000, free: 0)) == nil)
  }

  @Test(arguments: [
    "", "5%", "5%:", ":5%", "10%:5%", "5%:5%", "6%:5%", "1001:1000", "1000:1000", "4G:2G", "0%:5%", "5%:100%",
    "5%:10%:20%", "x:y",
  ])
  func whatIsNoRuleIsRefused(text: String) {
    #expect(throws: LimitRefusal.self) { try PurgeRule(text) }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

struct RemovedLimitTests {
  private static let day: Int64 = 86_400

  @Test(
    arguments: [
      (30, 0, 30 * day - 1, false), (30, 0, 30 * day, true), (1, 100, 100 + day, true),
      (1, 100, 99 + day, false), (0, 7, 7, true), (0, 7, 6, false), (30, 40 * day, 0, false),
      (30, .min, .max, false), (30, 0, .max, true),
    ] as [(Int, Int64, Int64, Bool)])
  func timeIsOverAfterSoManyDays(days: Int, removed: Int64, now: Int64, isOver: Bool) {
    #expect(RemovedLimit(days: days).isOver(removed: removed, now: now) == isOver)
  }

  @Test func daysAreWithinTheirLimits() {
    #expect([-1, 0, 30, 31].map { RemovedLimit(days: $0).days } == [0, 0, 30, 30])
    #expect(RemovedLimit.usual.days == 30)
  }
}

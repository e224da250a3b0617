// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

/// Who gets how much of what is limited.
@Suite struct FairShareTests {
  static let table: [(total: Int, needs: [String: Int], shares: [String: Int])] = [
    (10, [:], [:]), (10, ["a": 3], ["a": 3]), (10, ["a": 11], ["a": 10]),
    (10, ["a": 3, "b": 7], ["a": 3, "b": 7]), (10, ["a": 3, "b": 100], ["a": 3, "b": 7]),
    (10, ["a": 100, "b": 1000], ["a": 5, "b": 5]),
    (11, ["a": 1, "b": 100, "c": 100], ["a": 1, "b": 5, "c": 5]),
    (100, ["a": 10, "b": 20, "c": 1000, "d": 1000], ["a": 10, "b": 20, "c": 35, "d": 35]),
    (0, ["a": 1], ["a": 0]), (-5, ["a": 1], ["a": 0]), (5, ["a": -1, "b": 9], ["a": 0, "b": 5]),
    (.max, ["a": .max, "b": .max], ["a": .max / 2, "b": .max / 2 + 1]),
  ]

  @Test(arguments: table) func needsAreMetWhileTheyAreModest(
    total: Int, needs: [String: Int], shares: [String: Int]
  ) {
    let found = FairShare.shares(of: total, among: needs)
    // Of two that need the same, either may get the odd one.
    #expect(found.values.sorted() == shares.values.sorted() && found.keys.sorted() == shares.keys.sorted())
    if Set(needs.values).count == needs.count { #expect(found == shares) }
    #expect(found.values.reduce(0, +) <= max(0, total))
  }
}

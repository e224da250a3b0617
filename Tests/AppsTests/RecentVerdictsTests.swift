// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Apps
internal import Testing

/// What a daemon remembers of the apps that were started.
struct RecentVerdictsTests {
  private static let own = RecentVerdicts<Int>.ownBytes

  /// The attack: a user starts apps from ever new paths, and a small one takes room, too.
  ///
  /// Others lose nothing by that: neither everyone's apps nor another user's.
  @Test func whoseAppsTakeTheMostLosesTheOldest() {
    var verdicts = RecentVerdicts<Int>(mostBytes: 8 * Self.own)
    verdicts.remember(1, at: "everyone's", of: nil, readFrom: 0)
    verdicts.remember(2, at: "neighbour's", of: 502, readFrom: 0)
    for number in 3...8 { verdicts.remember(number, at: "\(number)", of: 501, readFrom: 0) }
    // The first of theirs is used again.
    #expect(verdicts.verdict(at: "3") == 3 && verdicts.count == 8)
    for number in 9...10 { verdicts.remember(number, at: "\(number)", of: 501, readFrom: 0) }
    #expect((3...10).map { verdicts.verdict(at: "\($0)") } == [3, nil, nil, 6, 7, 8, 9, 10])
    // A neighbour who comes later has room, at the cost of the one who has the most.
    verdicts.remember(11, at: "latest", of: 503, readFrom: 0)
    let others = ["everyone's", "neighbour's", "latest"].map { verdicts.verdict(at: $0) }
    #expect(others == [1, 2, 11] && verdicts.verdict(at: "3") == nil && verdicts.count == 8)
  }

  /// What takes the place of another counts once.
  @Test func theyAreOnlySoLargeTogether() {
    var verdicts = RecentVerdicts<Int>(mostBytes: 16 * Self.own)
    for number in 1...100 { verdicts.remember(number, at: "a", of: 501, readFrom: 2 * Self.own) }
    for (number, name) in ["b", "c", "d", "e"].enumerated() {
      verdicts.remember(number, at: name, of: 501, readFrom: 2 * Self.own)
    }
    #expect(["a", "b", "c", "d", "e"].map { verdicts.verdict(at: $0) } == [100, 0, 1, 2, 3])
    verdicts.remember(4, at: "f", of: 501, readFrom: Self.own)
    #expect(["a", "b", "f"].map { verdicts.verdict(at: $0) } == [nil, 0, 4])
    // One that is too large is not remembered, and pushes nothing out; what it replaces goes all the same.
    verdicts.remember(5, at: "g", of: 501, readFrom: 3 * Self.own)
    verdicts.remember(6, at: "f", of: 501, readFrom: Int.max)
    #expect(["b", "c", "d", "e", "f", "g"].map { verdicts.verdict(at: $0) } == [0, 1, 2, 3, nil, nil])
  }
}

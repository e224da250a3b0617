// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing
@testable internal import Volume

/// For how long which names are not cached after all of a view had to be looked up again, by a clock that the
/// test sets.
struct NameCacheBackoffTests {
  private static func directory(_ number: UInt64) -> ObjectNumber { ObjectNumber(inode: number, device: 1) }
  private static let (alice, bob): (UInt32, UInt32) = (1000, 1001)
  private static let start: UInt32 = 5000

  @Test func directoryWaitsForAMinuteAtMost() {
    let backoff = NameCacheBackoff(seconds: 60)
    for round in UInt32(0)..<100 {
      let now = Self.start + 100 * round
      backoff.add(Self.directory(1), owner: Self.alice, at: now)
      #expect(backoff.covers(Self.directory(1), owner: Self.alice, at: now + 59))
      #expect(!backoff.covers(Self.directory(1), owner: Self.alice, at: now + 60))
      // Other directories of its owner don't wait, nor do those of others.
      #expect(!backoff.covers(Self.directory(2), owner: Self.alice, at: now))
      #expect(!backoff.covers(Self.directory(2), owner: Self.bob, at: now))
      #expect(backoff.counts(at: now) == (1, 0) && backoff.counts(at: now + 60) == (0, 0))
    }
  }

  @Test func ownerOfManyWaitsToo() {
    let backoff = NameCacheBackoff(seconds: 60)
    for number in 0..<UInt64(NameCacheBackoff.tolerated) {
      #expect(!backoff.covers(Self.directory(99), owner: Self.alice, at: Self.start))
      backoff.add(Self.directory(number), owner: Self.alice, at: Self.start)
    }
    for (second, isCovered) in [(0, true), (59, true), (60, false)] as [(UInt32, Bool)] {
      let now = Self.start + second
      #expect(backoff.covers(Self.directory(99), owner: Self.alice, at: now) == isCovered)
      #expect(!backoff.covers(Self.directory(99), owner: Self.bob, at: now))
      // Where owners make no difference, and for root, directories alone count.
      #expect(!backoff.covers(Self.directory(99), owner: nil, at: now))
    }
    #expect(backoff.counts(at: Self.start) == (NameCacheBackoff.tolerated, 1))
  }

  /// Those who do it now and then are not taken for those who do it on purpose.
  @Test func slowOnesAreNotCounted() {
    let backoff = NameCacheBackoff(seconds: 60)
    for number in 0..<UInt64(100) {
      let now = Self.start + UInt32(number) * 16
      backoff.add(Self.directory(number), owner: Self.alice, at: now)
      #expect(!backoff.covers(Self.directory(999), owner: Self.alice, at: now))
    }
  }

  @Test func rootsDirectoriesWaitOneByOne() {
    let backoff = NameCacheBackoff(seconds: 60)
    for number in 0..<UInt64(50) { backoff.add(Self.directory(number), owner: 0, at: Self.start) }
    #expect(!backoff.covers(Self.directory(99), owner: 0, at: Self.start))
    #expect(backoff.counts(at: Self.start) == (50, 0))
  }

  /// Whoever tries for an hour has others look up their names five times a minute at most.
  @Test func whoeverTriesAllTheTimeIsSlowedDown() {
    let backoff = NameCacheBackoff(seconds: 60)
    var withdrawals = 0
    for second in UInt32(0)..<3600 {
      for number in 0..<UInt64(20) {
        let directory = Self.directory(UInt64(second) * 20 + number)
        // Names that are not cached are not withdrawn.
        if backoff.covers(directory, owner: Self.alice, at: Self.start + second) { continue }
        withdrawals += 1
        backoff.add(directory, owner: Self.alice, at: Self.start + second)
      }
    }
    #expect((60...300).contains(withdrawals), "\(withdrawals)")
  }

  /// What is remembered has an end, and whoever has more directories than that does not get around it.
  @Test func memoryHasAnEnd() {
    let backoff = NameCacheBackoff(seconds: 60)
    for number in 0..<UInt64(10_000) { backoff.add(Self.directory(number), owner: 0, at: Self.start) }
    #expect(backoff.counts(at: Self.start).directories == NameCacheBackoff.maxEntries)
    backoff.add(Self.directory(20_000), owner: Self.bob, at: Self.start)
    #expect(backoff.covers(Self.directory(20_000), owner: Self.bob, at: Self.start))
    // Room is made when the time is over.
    backoff.add(Self.directory(30_000), owner: Self.alice, at: Self.start + 61)
    #expect(backoff.counts(at: Self.start + 61) == (1, 0))
  }
}

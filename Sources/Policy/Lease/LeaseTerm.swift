// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// A lease on a store that several machines can reach: whoever has it uses the store alone.
//
//  1. Each time that it is taken it gets the next number, by making what only one can make. The highest
//     number has it.
//  2. Whoever has it renews it by writing something new. A renewal counts from the moment before the write
//     began, and only if the write was done while the one before still counted.
//  3. Whoever waits compares nothing but what is written and its own clock: the lease is free when nothing
//     new was written for `silence`. No two clocks need show the same time; they need to run about equally
//     fast.
//  4. `silence` is longer than `hold` by as much as one machine may see later what another has written, and
//     by what clocks may differ. So who has had it has stopped for a while before another one begins.

/// How long what counts, in nanoseconds.
package struct LeaseTimes: Sendable {
  /// For how long a renewal counts.
  package var hold: UInt64
  /// How often it is renewed.
  package var renewal: UInt64
  /// After so long without a renewal another machine may take it.
  package var silence: UInt64

  package init(hold: UInt64, renewal: UInt64, silence: UInt64) {
    self.hold = hold
    self.renewal = renewal
    self.silence = silence
  }

  /// Five seconds are for clocks and for what is under way.
  ///
  /// The other twenty are for what a machine may see late: clients of servers keep what they have read.
  package static let usual = LeaseTimes(
    hold: 20_000_000_000, renewal: 5_000_000_000, silence: 45_000_000_000)
}

/// Until when a lease is ours.
package struct LeaseTerm: Equatable, Sendable {
  package private(set) var end: UInt64

  /// It was taken, or last renewed, by a write that began then.
  package init(begun: UInt64, _ times: LeaseTimes) { end = begun &+ times.hold }

  package func isOver(at now: UInt64) -> Bool { now >= end }

  /// A write has renewed it; false if that came too late, and the lease may be another's.
  package mutating func renew(begun: UInt64, done: UInt64, _ times: LeaseTimes) -> Bool {
    guard !isOver(at: done) else { return false }
    end = begun &+ times.hold
    return true
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Updates that could not be put in place and wait on: why, and when they are tried again.
///
/// An attempt may read a whole app, at nobody's expense. So those that have failed wait, each time twice as
/// long, unless their own app is started or ended.
struct PostponedUpdates {
  private struct Entry {
    let reason: String
    let pause: UInt64
    let due: UInt64
  }
  private var entries: [String: Entry] = [:]

  /// In nanoseconds.
  static let shortestPause: UInt64 = 300_000_000_000
  static let longestPause: UInt64 = 24 * 3600 * 1_000_000_000

  /// Those that are to be tried now of all that wait, by the names of their copies.
  ///
  /// What has not failed comes first, and what does not wait any more is forgotten.
  mutating func due(among waiting: [String], at now: UInt64) -> [String] {
    let names = Set(waiting)
    entries = entries.filter { names.contains($0.key) }
    return waiting.filter { entries[$0] == nil }
      + waiting.filter { name in
        entries[name].map { $0.due <= now } ?? false
      }
  }

  /// Notes that one has failed; whether that was for another reason before, or has not been said.
  mutating func postpone(_ name: String, for reason: String, at now: UInt64) -> Bool {
    let before = entries[name]
    let pause = before.map { min($0.pause * 2, Self.longestPause) } ?? Self.shortestPause
    entries[name] = Entry(reason: reason, pause: pause, due: now &+ pause)
    return before?.reason != reason
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The time without a key that must pass before keys answer a question.
///
/// Who types for an app does not stop because a question appears. So a key before the end of this time is no
/// answer, and begins the time anew. It ends only when somebody has looked and found nothing: keys may have
/// waited for a busy process longer than the time lasts.
package struct QuietPeriod: Equatable, Sendable {
  /// 700 milliseconds.
  package static let length: UInt64 = 700_000_000

  private var end: UInt64?

  /// `now` is a time in nanoseconds.
  package init(from now: UInt64) { end = now &+ Self.length }

  package var isOver: Bool { end == nil }

  /// Nanoseconds after which to look; nil if it is over.
  package func left(at now: UInt64) -> UInt64? { end.map { $0 > now ? $0 - now : 0 } }

  /// A key has come.
  package mutating func disturb(at now: UInt64) {
    if end != nil { end = now &+ Self.length }
  }

  /// Somebody has looked, and there is no key; whether it ends with that.
  package mutating func pass(at now: UInt64) -> Bool {
    guard let end, now >= end else { return false }
    self.end = nil
    return true
  }
}

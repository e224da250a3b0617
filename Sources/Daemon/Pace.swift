// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// Lets others have the disk and the lock of the filesystem's journal most of the time.
final class Pace {
  private static let slice: UInt64 = 5_000_000
  private let rests: UInt64
  private var began = monotonicNanoseconds()

  /// `rests` is for how long it rests in all, as a multiple of the time that it works.
  init(rests: UInt64 = 1) { self.rests = rests }

  func rest() {
    let worked = monotonicNanoseconds() &- began
    guard worked >= Self.slice else { return }
    // Nothing but this time is waited for.
    _ = Condition(()).wait(milliseconds: Int(min(worked / 1_000_000 &* rests, 100))) { _ in false }
    began = monotonicNanoseconds()
  }
}

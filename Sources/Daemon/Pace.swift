// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

/// Lets others have the disk and the lock of the filesystem's journal most of the time.
final class Pace {
  private static let slice: UInt64 = 5_000_000
  private let rests: UInt64
  private let most: Int
  private var began = monotonicNanoseconds()
  private var names = 0

  /// More than people have in one place: whoever fills a directory as fast as it is emptied keeps nobody
  /// waiting for ever who comes after them.
  static let usually = 2_000_000

  /// `rests` is for how long it rests in all, as a multiple of the time that it works; after `most` names it
  /// is over.
  init(rests: UInt64 = 1, most: Int = .max) {
    self.rests = rests
    self.most = most
  }

  /// Lets others have the processors first, from this thread on; it does not get its priority back.
  ///
  /// Not by more: what it does may hold what a filesystem's others need.
  static func giveWay() { _ = setpriority(Int32(PRIO_PROCESS.rawValue), 0, 5) }

  var isOver: Bool { names >= most }

  /// Something else comes now.
  func begin() { names = 0 }

  /// Rests where it is time to; whether it has.
  @discardableResult
  func rest() -> Bool {
    names &+= 1
    let worked = monotonicNanoseconds() &- began
    guard worked >= Self.slice else { return false }
    // Nothing but this time is waited for.
    pauseThread(milliseconds: Int(min(worked / 1_000_000 &* rests, 100)))
    began = monotonicNanoseconds()
    return true
  }

  /// The same; EINTR where it is over, or was cancelled.
  func rest(orEndIf isCancelled: () -> Bool) throws(Errno) {
    if rest() && isCancelled() || isOver { throw .EINTR }
  }
}

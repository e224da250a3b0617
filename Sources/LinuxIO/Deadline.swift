// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Synchronization

/// A moment by ``bootNanoseconds()`` that is put off again and again, and after which nothing more must be
/// done.
///
/// Any thread may look, and whoever finds it over does what was said for that.
package final class Deadline: Sendable {
  private let moment: Atomic<UInt64>
  private let whenOver: @Sendable () -> Void

  package init(_ moment: UInt64, whenOver: @escaping @Sendable () -> Void) {
    self.moment = Atomic(moment)
    self.whenOver = whenOver
  }

  package var nanosecondsLeft: UInt64 {
    let (moment, now) = (moment.load(ordering: .acquiring), bootNanoseconds())
    return now < moment ? moment - now : 0
  }

  package func putOff(to moment: UInt64) { self.moment.store(moment, ordering: .releasing) }

  /// Whether it is not over.
  @discardableResult
  package func check() -> Bool {
    if nanosecondsLeft > 0 { return true }
    whenOver()
    return false
  }
}

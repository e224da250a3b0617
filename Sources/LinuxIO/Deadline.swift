// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Synchronization

/// A moment by ``bootNanoseconds()`` that is put off again and again, and after which nothing more must be
/// done.
///
/// Any thread may look, and whoever first finds it over does what was said for that.
package final class Deadline: Sendable {
  private let moment: Atomic<UInt64>
  /// What is to be done when it is over; nil once that was begun.
  private let whenOver = Mutex<[@Sendable () -> Void]?>([])

  package init(_ moment: UInt64) { self.moment = Atomic(moment) }

  /// Has something done when it is over; at once, if it is.
  package func whenOver(_ body: @escaping @Sendable () -> Void) {
    let isAwaited = whenOver.withLock { bodies -> Bool in
      bodies?.append(body)
      return bodies != nil
    }
    if !isAwaited { body() }
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
    for body in whenOver.withLock({ $0.take() }) ?? [] { body() }
    return false
  }
}

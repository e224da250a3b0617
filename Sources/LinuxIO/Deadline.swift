// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Synchronization

/// A moment by ``bootNanoseconds()`` that is put off again and again, and after which a process must do
/// nothing more.
///
/// Any thread may look, and whoever finds it over ends the process.
package final class Deadline: Sendable {
  private let moment: Atomic<UInt64>
  private let whenOver: @Sendable () -> Never

  package init(_ moment: UInt64, whenOver: @escaping @Sendable () -> Never) {
    self.moment = Atomic(moment)
    self.whenOver = whenOver
  }

  package var nanosecondsLeft: UInt64 {
    let (moment, now) = (moment.load(ordering: .acquiring), bootNanoseconds())
    return now < moment ? moment - now : 0
  }

  package func putOff(to moment: UInt64) { self.moment.store(moment, ordering: .releasing) }

  /// Returns only if it is not over.
  package func check() { if nanosecondsLeft == 0 { whenOver() } }
}

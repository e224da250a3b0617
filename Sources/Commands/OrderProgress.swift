// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Synchronization

/// The last that was heard of how far an order is.
final class OrderProgress: Sendable {
  private let last = Mutex<ControlProgress?>(nil)

  func note(_ progress: ControlProgress) { last.withLock { $0 = progress } }

  /// For people.
  var text: String {
    guard let progress = last.withLock({ $0 }) else { return "waiting for what is in work" }
    guard progress.total > 0 else { return progress.phase }
    let percent = min(progress.done, progress.total).multipliedReportingOverflow(by: 100)
    let share = percent.overflow ? "" : ", \(percent.partialValue / progress.total) %"
    return
      "\(progress.phase): \(Int(clamping: progress.done).asSize) "
      + "of \(Int(clamping: progress.total).asSize)\(share)"
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO

/// The thread that puts updates in place which have waited until their apps run no more.
final class UpdateThread: Sendable {
  private let thread: JoinableThread
  private let views: RunningViews

  /// Begins with what was left, and has waited, while nobody served the store.
  init(_ apps: AppService, _ views: RunningViews) throws(Errno) {
    self.views = views
    thread = try JoinableThread(name: "updates") {
      UserWork.ofProcess.begin(for: .store, as: "clear") { apps.clear() }
      var ended: UInt64? = 0
      repeat {
        apps.placeUpdates { views.isOver }
        ended = ended.flatMap(views.waitForEnds)
      } while ended != nil
    }
  }

  /// Returns when it has ended; what it was doing is done by then.
  func stop() {
    views.stopWaitingForEnds()
    thread.join()
  }
}

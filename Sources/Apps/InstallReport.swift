// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Store
internal import Synchronization

/// Tells someone who waits how far it has come, not more often than people can see.
final class InstallReport: Sendable {
  private struct State {
    var progress = InstallProgress(phase: .looking)
    var nextReport: UInt64 = 0
  }
  private let state = Mutex(State())
  let wait: InstallWait

  init(_ wait: InstallWait) {
    self.wait = wait
    wait.progress(InstallProgress(phase: .looking))
  }

  /// A tenth of a second, in nanoseconds.
  private static let interval: UInt64 = 100_000_000

  /// Notes how much there is to copy.
  func expect(_ size: TreeSize) {
    state.withLock {
      $0.progress.total = size.bytes
      $0.progress.filesTotal = size.entries
    }
  }

  func enter(_ phase: InstallProgress.Phase) {
    // Told under the lock, so that it is told in its order.
    state.withLock {
      $0.progress.phase = phase
      wait.progress($0.progress)
    }
  }

  func copied(_ count: TreeCopy.Count) {
    state.withLock {
      $0.progress.done = count.bytes
      $0.progress.filesDone = count.files + count.links + count.directories
      let now = monotonicNanoseconds()
      guard now >= $0.nextReport else { return }
      $0.nextReport = now + Self.interval
      wait.progress($0.progress)
    }
  }

  func checkCancelled() throws(AppFailure) {
    if wait.isCancelled() { throw .cancelled }
  }
}

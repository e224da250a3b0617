// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Store
internal import Synchronization

/// Forces a store's filesystem to disk while something else is done: the disk has its work and the CPUs have
/// theirs.
final class DiskSynchronization: Sendable {
  private let failure: Failure
  private let thread: JoinableThread?

  private final class Failure: Sendable {
    let error = Mutex<Errno?>(nil)

    func synchronize(_ directory: FD) {
      do throws(Errno) { try directory.synchronizeFilesystem() } catch {
        let reason = error
        self.error.withLock { $0 = reason }
      }
    }
  }

  /// Begins; `store` is kept open until ``end()``.
  init(of store: Store) {
    let failure = Failure()
    let directory = store.directory
    let thread = try? JoinableThread(name: "sync") { failure.synchronize(directory) }
    // Where there is no thread to be had, we wait.
    if thread == nil { failure.synchronize(directory) }
    self.failure = failure
    self.thread = thread
  }

  /// Waits until all that was written before ``init(of:)`` is on disk; once.
  func end() -> Errno? {
    thread?.join()
    return failure.error.withLock { $0 }
  }
}

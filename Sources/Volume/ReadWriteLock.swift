// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

/// A readers-writer lock.
///
/// Waiting writers go before readers that arrive later. It is safe to send: it is made before and unmade
/// after anybody can use it.
final class ReadWriteLock: @unchecked Sendable {
  private let lock = UnsafeMutablePointer<pthread_rwlock_t>.allocate(capacity: 1)

  init() {
    var attributes = pthread_rwlockattr_t()
    pthread_rwlockattr_init(&attributes)
    pthread_rwlockattr_setkind_np(&attributes, Int32(PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP))
    pthread_rwlock_init(lock, &attributes)
    pthread_rwlockattr_destroy(&attributes)
  }

  deinit {
    pthread_rwlock_destroy(lock)
    lock.deallocate()
  }

  func reading<Result: ~Copyable>(_ body: () throws(Errno) -> Result) throws(Errno) -> Result {
    pthread_rwlock_rdlock(lock)
    defer { pthread_rwlock_unlock(lock) }
    return try body()
  }

  /// For whoever says on the same thread when it is over.
  func lockForWriting() { pthread_rwlock_wrlock(lock) }

  func unlock() { pthread_rwlock_unlock(lock) }
}

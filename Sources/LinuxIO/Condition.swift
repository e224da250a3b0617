// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

/// A value under a lock, and threads that wait for it to be changed.
///
/// It is safe to send: the value is read and written only under the lock, which is made before and unmade
/// after anybody can use it. Corresponds to `pthread_cond_wait(3)`.
package final class Condition<Value>: @unchecked Sendable {
  private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  private var value: Value

  package init(_ value: sending Value) {
    self.value = value
    pthread_mutex_init(lock, nil)
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    pthread_cond_init(changed, &attributes)
    pthread_condattr_destroy(&attributes)
  }

  deinit {
    pthread_cond_destroy(changed)
    pthread_mutex_destroy(lock)
    changed.deallocate()
    lock.deallocate()
  }

  /// Reads or changes the value, which wakes nobody.
  package func withLock<Result, Failure: Error>(
    _ body: (inout Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    pthread_mutex_lock(lock)
    defer { pthread_mutex_unlock(lock) }
    return try body(&value)
  }

  /// Changes the value, and has all who wait look at it.
  package func change<Result, Failure: Error>(
    _ body: (inout Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    defer { wake() }
    return try withLock(body)
  }

  /// Has all who wait look at the value, for whoever changes it by ``withLock(_:)`` and knows when that
  /// matters to them.
  package func wake() { pthread_cond_broadcast(changed) }

  /// Has one of those who wait look at the value: for where all wait for the same.
  package func wakeOne() { pthread_cond_signal(changed) }

  /// Waits until the value is as it should be, for as long as that takes.
  package func wait(until isReached: (Value) -> Bool) {
    wait(until: isReached) { _ in }
  }

  /// The same; `body` may change the value before anybody else does.
  package func wait<Result>(until isReached: (Value) -> Bool, _ body: (inout Value) -> Result) -> Result {
    pthread_mutex_lock(lock)
    defer { pthread_mutex_unlock(lock) }
    while !isReached(value) { pthread_cond_wait(changed, lock) }
    return body(&value)
  }

  /// The same for some time at most; whether it is as it should be.
  package func wait(milliseconds: Int, until isReached: (Value) -> Bool) -> Bool {
    var end = timespec()
    clock_gettime(CLOCK_MONOTONIC, &end)
    let nanoseconds = end.tv_nsec + milliseconds % 1000 * 1_000_000
    end.tv_sec += milliseconds / 1000 + nanoseconds / 1_000_000_000
    end.tv_nsec = nanoseconds % 1_000_000_000
    pthread_mutex_lock(lock)
    defer { pthread_mutex_unlock(lock) }
    while !isReached(value) {
      if pthread_cond_timedwait(changed, lock, &end) == ETIMEDOUT { return isReached(value) }
    }
    return true
  }
}

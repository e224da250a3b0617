// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import Synchronization

/// A thread of our own, that ends before the program goes on past ``join()``.
package final class JoinableThread: Sendable {
  private let id: pthread_t

  /// Starts it.
  ///
  /// Corresponds to `pthread_create(3)`.
  package init(name: String, _ body: @escaping @Sendable () -> Void) throws(Errno) {
    final class Box {
      let body: @Sendable () -> Void
      init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    let isOwn = ThreadIdentity.isOwn
    let box = Unmanaged.passRetained(
      Box {
        if !isOwn { ThreadIdentity.reset() }
        // The kernel keeps fifteen bytes of it. Corresponds to `prctl(2)` with PR_SET_NAME.
        name.withCString { _ = clx_prctl(15, UInt(bitPattern: $0)) }
        body()
      })
    var id = pthread_t()
    let error = pthread_create(
      &id, nil,
      { argument in
        if let argument { Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().body() }
        return nil
      }, box.toOpaque())
    guard error == 0 else {
      box.release()
      throw Errno(error)
    }
    self.id = id
  }

  /// Gives the calling thread a short time slice, so that the scheduler prefers it when it wakes up.
  ///
  /// A thread with a short slice gets no more of a CPU than others do, but gets it sooner: the scheduler
  /// (since Linux 6.12) picks whose slice would end first. Earlier kernels ignore this. Corresponds to
  /// `sched_setattr(2)`.
  package static func shortenTimeSlice(nanoseconds: UInt64) {
    _ = clx_set_time_slice(nanoseconds)
  }

  /// Runs `body` on a new thread, and returns or throws as it does.
  ///
  /// For a process that was forked: Swift's `Mutex` remembers the number of the thread that locks it, and the
  /// one that has come through the fork still passes for the parent's. The kernel finds no such owner of a
  /// lock that others wait for, and Swift ends the process.
  package static func run(name: String, _ body: () throws -> Void) throws {
    try withoutActuallyEscaping(body) { body in
      // The caller waits for the thread, so nothing is used by both at once, nor after its end.
      nonisolated(unsafe) let body = body
      let ended = Mutex<Result<Void, any Error>>(.success(()))
      let thread = try JoinableThread(name: name) {
        let result = Result { try body() }
        ended.withLock { $0 = result }
      }
      thread.join()
      try ended.withLock { try $0.get() }
    }
  }

  /// What `body` gives on a thread of its own; nil if the caller has waited so long, or there is no thread.
  ///
  /// For what may wait for a filesystem that does not answer: the thread goes on until that does.
  package static func result<Value: Sendable>(
    name: String, milliseconds: Int, _ body: @escaping @Sendable () -> Value
  ) -> Value? {
    let found = Condition(Value?.none)
    let thread = try? JoinableThread(name: name) {
      let value = body()
      found.change { $0 = value }
    }
    guard let thread else { return nil }
    thread.detach()
    _ = found.wait(milliseconds: milliseconds) { $0 != nil }
    return found.withLock { $0 }
  }

  /// Waits for its end; once.
  ///
  /// Corresponds to `pthread_join(3)`.
  package func join() {
    _ = pthread_join(id, nil)
  }

  /// Lets it run for as long as the process does.
  ///
  /// Corresponds to `pthread_detach(3)`.
  package func detach() {
    _ = pthread_detach(id)
  }
}

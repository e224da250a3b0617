// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc

/// Work for a few threads that makes more work while it is done, such as a walk through a tree.
///
/// Last in, first out, so that a walk goes into the depth and what waits stays little.
///
/// It is safe to send: everything in it is read and written only under the lock, which is made before and
/// unmade after anybody can use it.
package final class WorkPile<Work: Sendable>: @unchecked Sendable {
  private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  private var waiting: [Work]
  /// How many are at work, and so may add more.
  private var busy = 0

  package init(_ first: [Work]) {
    waiting = first
    pthread_mutex_init(lock, nil)
    pthread_cond_init(changed, nil)
  }

  deinit {
    pthread_cond_destroy(changed)
    pthread_mutex_destroy(lock)
    changed.deallocate()
    lock.deallocate()
  }

  /// Adds work; only while working on something that ``next(isDone:)`` gave.
  package func add(_ work: [Work]) {
    guard !work.isEmpty else { return }
    pthread_mutex_lock(lock)
    waiting += work
    pthread_cond_broadcast(changed)
    pthread_mutex_unlock(lock)
  }

  /// The next piece of work; waits while others may still add some, and is nil when all is done.
  ///
  /// The first time `isDone` is false, and after that it is true: what was given before is done.
  package func next(isDone: Bool) -> Work? {
    pthread_mutex_lock(lock)
    defer { pthread_mutex_unlock(lock) }
    if isDone { busy -= 1 }
    while waiting.isEmpty, busy > 0 { pthread_cond_wait(changed, lock) }
    guard let work = waiting.popLast() else {
      // The others wait for the same.
      pthread_cond_broadcast(changed)
      return nil
    }
    busy += 1
    return work
  }

  /// Does all of it on this thread and others: `makeWorker` is called once on each.
  ///
  /// Returns when all is done. Where no more threads are to be had, it is done by fewer. `waits` says that
  /// the work is partly waiting: one thread more than there are CPUs keeps them at work.
  package func work(
    name: String, waits: Bool = false, _ makeWorker: @escaping @Sendable () -> (Work) -> Void
  ) {
    var others: [JoinableThread] = []
    for _ in 1..<Self.threads(waits) {
      guard let thread = try? JoinableThread(name: name, { [self] in run(makeWorker()) }) else { break }
      others.append(thread)
    }
    run(makeWorker())
    for thread in others { thread.join() }
  }

  /// Like ``work(name:waits:_:)``, with none of it on this thread: the others may change what threads have of
  /// their own, as they end with the work.
  ///
  /// Throws, and nothing is done, where no thread is to be had.
  package func workElsewhere(
    name: String, waits: Bool = false, _ makeWorker: @escaping @Sendable () -> (Work) -> Void
  ) throws(Errno) {
    var others: [JoinableThread] = []
    for _ in 0..<Self.threads(waits) {
      do throws(Errno) {
        others.append(try JoinableThread(name: name) { [self] in run(makeWorker()) })
      } catch {
        if others.isEmpty { throw error }
        break
      }
    }
    for thread in others { thread.join() }
  }

  private static func threads(_ waits: Bool) -> Int {
    min(max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) + (waits ? 1 : 0), 8)
  }

  private func run(_ worker: (Work) -> Void) {
    var isDone = false
    while let work = next(isDone: isDone) {
      worker(work)
      isDone = true
    }
  }
}

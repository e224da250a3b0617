// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc

/// A stack of work for a few threads, which may add more work, such as a walk through a tree.
///
/// Last in, first out, so that a walk goes into the depth and what waits stays little.
package final class WorkStack<Work: Sendable>: Sendable {
  private struct State {
    var waiting: [Work]
    /// How many are at work, and so may add more.
    var busy = 0
  }
  private let state: Condition<State>

  package init(_ first: [Work]) { state = Condition(State(waiting: first)) }

  /// Adds work; only while working on something that ``next(isDone:)`` gave.
  package func add(_ work: [Work]) {
    guard !work.isEmpty else { return }
    state.change { $0.waiting += work }
  }

  /// The next piece of work; waits while others may still add some, and is nil when all is done.
  ///
  /// The first time `isDone` is false, and after that it is true: what was given before is done.
  package func next(isDone: Bool) -> Work? {
    if isDone { state.withLock { $0.busy -= 1 } }
    let work = state.wait(until: { !$0.waiting.isEmpty || $0.busy == 0 }) { state in
      let work = state.waiting.popLast()
      if work != nil { state.busy += 1 }
      return work
    }
    // The others wait for the same.
    if work == nil { state.wake() }
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

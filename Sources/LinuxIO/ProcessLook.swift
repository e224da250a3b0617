// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import Synchronization

/// A look at many processes of which some may make the reader wait.
///
/// The kernel takes the lock of a process's memory map to read /proc/PID/maps, smaps, cmdline and environ. A
/// process can hold that lock for as long as it likes: it unmaps a changed file on a filesystem of its own
/// that does not answer. It can do the same while it executes a program, and then maps can't be opened. So
/// nothing in the program reads these files but in a look:
///
///  1. The caller waits for all processes together, and for one of them no longer than a moment.
///  2. A thread that still waits then goes on waiting, alone. Until it is done no look asks about other
///     processes of that user, so that each user holds one thread and no more.
///  3. A user's processes have a share of the time, so that many slow ones cost nobody else's their turn.
///
/// Whoever a look has no answer for did not let itself be looked at.
package struct ProcessLook: Sendable {
  /// How long all processes are waited for, one of them, and those of one user.
  struct Limits: Sendable {
    var all = 5000
    var one = 1000
    var user = 2000
  }

  private var limits = Limits()
  private let owner: @Sendable (Int32) -> UInt32?
  private let stuck: StuckLooks

  package init() { self.init(Limits(), stuck: .ofProgram) { ProcessID.user(of: $0) } }

  init(_ limits: Limits, stuck: StuckLooks, owner: @escaping @Sendable (Int32) -> UInt32?) {
    (self.limits, self.stuck, self.owner) = (limits, stuck, owner)
  }

  /// What `body` gives for each process; nothing for one that has made it wait, or whose turn did not come.
  ///
  /// Nobody waits for `body`, so it must not use anything that the caller gives back.
  package func answers<Value: Sendable>(
    about processes: [Int32], _ body: @escaping @Sendable (Int32) -> Value
  ) -> [Int32: Value] {
    let state = Condition(State<Value>())
    let end = monotonicNanoseconds() + UInt64(limits.all) * 1_000_000
    start(0, processes, state, body)
    while !state.wait(milliseconds: min(limits.one, max(1, millisecondsLeft(until: end))), until: \.isOver),
      monotonicNanoseconds() < end
    {
      let next = state.withLock { state -> Int? in
        guard let current = state.current,
          monotonicNanoseconds() - current.began >= UInt64(limits.one) * 1_000_000
        else { return nil }
        giveUp(&state)
        return state.runner
      }
      if let next { start(next, processes, state, body) }
    }
    return state.withLock { state in
      giveUp(&state)
      return state.found
    }
  }

  // MARK: The thread that looks

  private struct State<Value: Sendable>: Sendable {
    var found: [Int32: Value] = [:]
    /// Which process is next.
    var next = 0
    var current: (process: Int32, owner: UInt32, began: UInt64)?
    /// How long those of each user have taken, in nanoseconds.
    var spent: [UInt32: UInt64] = [:]
    /// Counts the threads; only the last one goes on.
    var runner = 0
    var isOver = false
  }

  /// Leaves the thread alone that looks now.
  private func giveUp<Value: Sendable>(_ state: inout State<Value>) {
    state.runner += 1
    guard let current = state.current else { return }
    stuck.add(current.process, of: current.owner)
    state.spent[current.owner, default: 0] += monotonicNanoseconds() - current.began
    state.current = nil
  }

  private func start<Value: Sendable>(
    _ runner: Int, _ processes: [Int32], _ state: Condition<State<Value>>,
    _ body: @escaping @Sendable (Int32) -> Value
  ) {
    let thread = try? JoinableThread(name: "processes") { [self] in
      while let process = next(runner, processes, state) {
        let value = body(process)
        guard note(value, of: process, runner, state) else { return }
      }
      state.change { if $0.runner == runner { $0.isOver = true } }
    }
    if let thread { thread.detach() } else { state.change { $0.isOver = true } }
  }

  /// The next process that may be looked at.
  private func next<Value: Sendable>(_ runner: Int, _ processes: [Int32], _ state: Condition<State<Value>>)
    -> Int32?
  {
    while true {
      let process = state.withLock { state -> Int32? in
        guard state.runner == runner, state.next < processes.count else { return nil }
        defer { state.next += 1 }
        return processes[state.next]
      }
      guard let process else { return nil }
      // One that has ended has none.
      guard let owner = owner(process), !stuck.covers(process, of: owner) else { continue }
      let isItsTurn = state.withLock { state in
        let isLast = state.runner == runner
        guard isLast, owner == 0 || state.spent[owner, default: 0] < UInt64(limits.user) * 1_000_000 else {
          return false
        }
        state.current = (process, owner, monotonicNanoseconds())
        return true
      }
      if isItsTurn { return process }
    }
  }

  /// Whether this thread goes on.
  private func note<Value: Sendable>(
    _ value: Value, of process: Int32, _ runner: Int, _ state: Condition<State<Value>>
  ) -> Bool {
    state.withLock { state in
      guard state.runner == runner else {
        stuck.remove(process)
        // It may have come in time for the caller.
        state.found[process] = value
        return false
      }
      if let current = state.current {
        state.spent[current.owner, default: 0] += monotonicNanoseconds() - current.began
      }
      state.current = nil
      state.found[process] = value
      return true
    }
  }
}

/// The processes for which a thread of this program still waits.
final class StuckLooks: Sendable {
  static let ofProgram = StuckLooks()
  /// However many users there are; beyond that root's processes alone are looked at.
  static let maxThreads = 64

  private let owners = Mutex<[Int32: UInt32]>([:])

  func add(_ process: Int32, of owner: UInt32) { owners.withLock { $0[process] = owner } }

  func remove(_ process: Int32) { owners.withLock { _ = $0.removeValue(forKey: process) } }

  var count: Int { owners.withLock { $0.count } }

  /// Whether a process must not be looked at now.
  ///
  /// Root's own stop no others of root's.
  func covers(_ process: Int32, of owner: UInt32) -> Bool {
    owners.withLock { owners in
      if owners.isEmpty { return false }
      if owners[process] != nil || owners.count >= 4 * Self.maxThreads { return true }
      return owner != 0 && (owners.count >= Self.maxThreads || owners.values.contains(owner))
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// Work that is done for users behind their backs, such as updates that have waited: one thing after the
/// other for each user, on a thread that no other user has.
///
/// A user who holds a file in the kernel makes whoever removes it wait for as long as they like. Only that
/// user's work waits then, or that of one app of everybody's, which everybody may hold.
package final class UserWork: Sendable {
  /// All of this process.
  package static let ofProcess = UserWork()

  package enum Line: Hashable, Sendable {
    case user(UInt32)
    /// An app of everybody's, by its path.
    case app(String)
    /// What concerns the whole store.
    case store
  }
  private struct Piece: Sendable {
    let name: String
    let number: UInt64
    let work: @Sendable () -> Void
  }
  /// The pieces of a line are done in the order of their numbers.
  private struct Pieces {
    /// The one that is being done, and since when.
    var current: UInt64
    var since = monotonicNanoseconds()
    var waiting: [Piece] = []
  }
  private struct State {
    var last: UInt64 = 0
    var lines: [Line: Pieces] = [:]
    var isOver = false

    func isDone(_ number: UInt64, in line: Line) -> Bool {
      lines[line].map { $0.current > number } ?? true
    }
  }
  private let state = Condition(State())

  package init() {}

  /// Has something done, unless nothing begins any more; it takes the place of what waits under its name.
  ///
  /// The result is its number; nil if it is not done.
  @discardableResult
  package func begin(for line: Line, as name: String, _ work: @escaping @Sendable () -> Void) -> UInt64? {
    state.withLock { state in
      guard !state.isOver else { return nil }
      if let waiting = state.lines[line]?.waiting {
        let same = waiting.firstIndex { $0.name == name }
        let number = same.map { waiting[$0].number } ?? state.last + 1
        let piece = Piece(name: name, number: number, work: work)
        if let same {
          state.lines[line]?.waiting[same] = piece
        } else {
          state.last = number
          state.lines[line]?.waiting.append(piece)
        }
        return number
      }
      state.last += 1
      let piece = Piece(name: name, number: state.last, work: work)
      // Without a thread for it, it is begun the next time.
      guard let thread = try? JoinableThread(name: "user", { [self] in serve(line, piece) }) else {
        return nil
      }
      thread.detach()
      state.lines[line] = Pieces(current: piece.number)
      return piece.number
    }
  }

  /// Has something done for some users, all at the same time; it is waited for by what this gives.
  package func begin(
    for users: some Sequence<UInt32>, as name: String, _ work: @escaping @Sendable (_ user: UInt32) -> Void
  ) -> Begun {
    var begun = Begun(work: self)
    for user in users {
      begun.users.append(user)
      // What can't have a thread is done here.
      guard let number = begin(for: .user(user), as: name, { work(user) }) else {
        work(user)
        continue
      }
      begun.numbers[user] = number
    }
    return begun
  }

  /// What has begun for some users.
  package struct Begun: Sendable {
    fileprivate let work: UserWork
    fileprivate var users: [UInt32] = []
    fileprivate var numbers: [UInt32: UInt64] = [:]

    /// Waits for it, for some time at most; the result is those users for whom it is not done.
    ///
    /// One for whom something has been under way for as long is not waited for again.
    package func wait(milliseconds: Int) -> [UInt32] {
      let now = monotonicNanoseconds()
      let patience = UInt64(milliseconds) &* 1_000_000
      let waited = work.state.withLock { state in
        numbers.filter { user, _ in state.lines[.user(user)].map { now &- $0.since < patience } ?? false }
      }
      _ = work.state.wait(milliseconds: milliseconds) { state in
        waited.allSatisfy { state.isDone($0.value, in: .user($0.key)) }
      }
      return work.state.withLock { state in
        users.filter { user in numbers[user].map { !state.isDone($0, in: .user(user)) } ?? false }
      }
    }
  }

  private func serve(_ line: Line, _ first: Piece) {
    var next: Piece? = first
    while let piece = next {
      piece.work()
      next = state.change { state in
        guard !state.isOver, let next = state.lines[line]?.waiting.first else {
          state.lines[line] = nil
          return nil
        }
        state.lines[line]?.waiting.removeFirst()
        state.lines[line]?.current = next.number
        state.lines[line]?.since = monotonicNanoseconds()
        return next
      }
    }
  }

  /// Begins nothing any more, and waits until what is being done has ended, or for so long.
  package func finish(milliseconds: Int) {
    state.withLock { $0.isOver = true }
    _ = state.wait(milliseconds: milliseconds) { $0.lines.isEmpty }
  }
}

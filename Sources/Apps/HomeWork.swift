// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
package import Store
internal import Synchronization

/// Work in homes outside of the store: one thing after the other in each, on a thread that no other home has.
///
/// A home whose disk or server does not answer then holds up its own work alone, and not that of another one
/// that has its name by then. It goes on when the home answers, if that is a part of the tree still: what was
/// begun in one never ends in another.
package final class HomeWork: Sendable {
  /// All of this process.
  package static let ofProcess = HomeWork()

  private struct Piece: Sendable {
    let name: String?
    let home: HomeElsewhere
    let changesApps: Bool
    /// Does it, or only tells that it is not done.
    let work: @Sendable (_ isDone: Bool) -> Void
  }
  private struct Line {
    var waiting: [Piece] = []
    /// Since when the thread of the home does what it does now.
    var since = monotonicNanoseconds()
  }
  private struct State {
    /// By which directory a home is.
    var lines: [RedirectedNames.Number: Line] = [:]
    var isOver = false
  }
  private let state = Condition(State())
  /// Is told when work has ended that may have changed apps or containers: whoever began it may not wait.
  private let changed = Mutex<(@Sendable () -> Void)?>(nil)

  /// Of more in one home, nothing is begun: whoever comes there next finds what is left.
  private static let mostWaiting = 64
  /// How long a command waits for what it has begun in homes.
  package static let patienceMilliseconds = 3000

  package init() {}

  package func tellOfChanges(_ tell: @escaping @Sendable () -> Void) { changed.withLock { $0 = tell } }

  /// What comes of something that was begun.
  package final class Result<Value: Sendable>: Sendable {
    fileprivate struct State {
      var isOver = false
      var value: Value?
    }
    fileprivate let state = Condition(State())

    /// Nil if it has not come by then, a time of the monotonic clock, or never will.
    package func value(until end: UInt64) -> Value? {
      _ = state.wait(milliseconds: millisecondsLeft(until: end)) { $0.isOver }
      return state.withLock { $0.value }
    }
  }

  /// Has something done in a home; nil if that is not begun, since the home is away, the same work waits
  /// there already, or too much, or nothing begins any more.
  ///
  /// Works of the same `name` are the same.
  @discardableResult
  package func begin<Value: Sendable>(
    in home: HomeElsewhere, as name: String? = nil, changingApps: Bool = true,
    _ work: @escaping @Sendable () -> Value
  ) -> Result<Value>? {
    guard let number = home.target?.number else { return nil }
    let result = Result<Value>()
    let piece = Piece(name: name, home: home, changesApps: changingApps) { isDone in
      let value = isDone ? work() : nil
      result.state.change { $0 = .init(isOver: true, value: value) }
    }
    let isBegun = state.withLock { state in
      if state.isOver { return false }
      if var line = state.lines[number] {
        let isKnown = name != nil && line.waiting.contains { $0.name == name }
        guard !isKnown, line.waiting.count < Self.mostWaiting else { return false }
        line.waiting.append(piece)
        state.lines[number] = line
        return true
      }
      guard let thread = try? JoinableThread(name: "home", { [self] in serve(number, piece) }) else {
        return false
      }
      thread.detach()
      state.lines[number] = Line()
      return true
    }
    return isBegun ? result : nil
  }

  private func serve(_ home: RedirectedNames.Number, _ first: Piece) {
    var next: Piece? = first
    while let piece = next {
      FormerWorkers.awaitEnd(onDevice: home.device)
      if piece.home.ifThere({ piece.work(true) }) == nil { piece.work(false) }
      if piece.changesApps { changed.withLock { $0 }?() }
      next = state.change { state in
        guard var line = state.lines[home], !line.waiting.isEmpty, !state.isOver else {
          state.lines[home] = nil
          return nil
        }
        let piece = line.waiting.removeFirst()
        line.since = monotonicNanoseconds()
        state.lines[home] = line
        return piece
      }
    }
  }

  /// Whether somebody has waited in vain for what is done in a home, and still would.
  package func hangs(in home: HomeElsewhere) -> Bool {
    guard let number = home.target?.number else { return false }
    let patience = UInt64(Self.patienceMilliseconds) * 1_000_000
    return state.withLock { state in
      state.lines[number].map { monotonicNanoseconds() &- $0.since > patience } ?? false
    }
  }

  /// Begins nothing any more, and waits until what is being done has ended, or for so long.
  package func finish(milliseconds: Int) {
    state.withLock { $0.isOver = true }
    _ = state.wait(milliseconds: milliseconds) { $0.lines.isEmpty }
  }
}

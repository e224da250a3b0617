// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// Work in homes outside of the store: one thing after the other in each, on a thread that no other home has.
///
/// A home whose disk or server does not answer then holds up its own work alone. That goes on when the home
/// answers.
package final class HomeWork: Sendable {
  /// All of this process.
  package static let ofProcess = HomeWork()

  private struct Piece: Sendable {
    let name: String?
    let work: @Sendable () -> Void
  }
  private struct Line {
    var waiting: [Piece] = []
    /// Since when the thread of the home does what it does now.
    var since = monotonicNanoseconds()
  }
  private struct State {
    var lines: [[UInt8]: Line] = [:]
    var isOver = false
  }
  private let state = Condition(State())

  /// Of more in one home, nothing is begun: whoever comes there next finds what is left.
  private static let mostWaiting = 64
  /// How long a command waits for what it has begun in homes.
  package static let patienceMilliseconds = 3000

  package init() {}

  /// What comes of something that was begun.
  package final class Result<Value: Sendable>: Sendable {
    fileprivate let value = Condition(Value?.none)

    /// Nil if it has not come by then, a time of the monotonic clock.
    package func value(until end: UInt64) -> Value? {
      _ = value.wait(milliseconds: millisecondsLeft(until: end)) { $0 != nil }
      return value.withLock { $0 }
    }
  }

  /// Has something done in a home; nil if that is not begun, since the same work waits there already, or too
  /// much, or nothing begins any more.
  ///
  /// Works of the same `name` are the same.
  @discardableResult
  package func begin<Value: Sendable>(
    in home: [UInt8], as name: String? = nil, _ work: @escaping @Sendable () -> Value
  ) -> Result<Value>? {
    let result = Result<Value>()
    let piece = Piece(name: name) {
      let value = work()
      result.value.change { $0 = value }
    }
    let isBegun = state.withLock { state in
      if state.isOver { return false }
      if var line = state.lines[home] {
        let isKnown = name != nil && line.waiting.contains { $0.name == name }
        guard !isKnown, line.waiting.count < Self.mostWaiting else { return false }
        line.waiting.append(piece)
        state.lines[home] = line
        return true
      }
      guard let thread = try? JoinableThread(name: "home", { [self] in serve(home, piece) }) else {
        return false
      }
      thread.detach()
      state.lines[home] = Line()
      return true
    }
    return isBegun ? result : nil
  }

  private func serve(_ home: [UInt8], _ first: Piece) {
    var next: Piece? = first
    while let piece = next {
      piece.work()
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
  package func hangs(in home: [UInt8]) -> Bool {
    let patience = UInt64(Self.patienceMilliseconds) * 1_000_000
    return state.withLock { state in
      state.lines[home].map { monotonicNanoseconds() &- $0.since > patience } ?? false
    }
  }

  /// Begins nothing any more, and waits until what is being done has ended, or for so long.
  package func finish(milliseconds: Int) {
    state.withLock { $0.isOver = true }
    _ = state.wait(milliseconds: milliseconds) { $0.lines.isEmpty }
  }
}

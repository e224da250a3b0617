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
    let work: @Sendable () -> Void
  }
  private struct State {
    /// What waits behind what is being done.
    var lines: [Line: [Piece]] = [:]
    var isOver = false
  }
  private let state = Condition(State())

  package init() {}

  /// Has something done; not if the same, by its name, waits already, or nothing begins any more.
  package func begin(for line: Line, as name: String, _ work: @escaping @Sendable () -> Void) {
    state.withLock { state in
      guard !state.isOver else { return }
      let piece = Piece(name: name, work: work)
      if let waiting = state.lines[line] {
        if !waiting.contains(where: { $0.name == name }) { state.lines[line]?.append(piece) }
        return
      }
      // Without a thread for it, it is begun the next time.
      guard let thread = try? JoinableThread(name: "user", { [self] in serve(line, piece) }) else { return }
      thread.detach()
      state.lines[line] = []
    }
  }

  private func serve(_ line: Line, _ first: Piece) {
    var next: Piece? = first
    while let piece = next {
      piece.work()
      next = state.change { state in
        guard !state.isOver, state.lines[line]?.isEmpty == false else {
          state.lines[line] = nil
          return nil
        }
        return state.lines[line]?.removeFirst()
      }
    }
  }

  /// Begins nothing any more, and waits until what is being done has ended, or for so long.
  package func finish(milliseconds: Int) {
    state.withLock { $0.isOver = true }
    _ = state.wait(milliseconds: milliseconds) { $0.lines.isEmpty }
  }
}

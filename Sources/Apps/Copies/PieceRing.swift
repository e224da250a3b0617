// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// Pieces of memory that one thread fills and another reads, in their order and round again.
///
/// It is safe to send: a piece is the one thread's until it is handed over, and only read from then until the
/// other has done with it.
final class PieceRing: @unchecked Sendable {
  private struct State {
    /// How much is in each piece.
    var counts: [Int]
    /// How many pieces were handed over until now, and how many of those have been read.
    var filled = 0
    var read = 0
    var isOver = false
  }
  private let state: Condition<State>
  private let memory: UnsafeMutableRawBufferPointer
  private let pieces: Int
  private let pieceSize: Int

  /// `memory`, which outlives it, is divided into so many pieces.
  init(_ memory: UnsafeMutableRawBufferPointer, pieces: Int) {
    self.memory = memory
    self.pieces = pieces
    pieceSize = memory.count / pieces
    state = Condition(State(counts: Array(repeating: 0, count: pieces)))
  }

  /// The piece that is to be filled next; waits, where none is free, until half of them are: to wake up for
  /// each would cost more than to fill it.
  func free() -> UnsafeMutableRawBufferPointer {
    let isFull = state.withLock { $0.filled - $0.read == pieces }
    let most = isFull ? pieces / 2 : pieces
    return piece(state.wait(until: { $0.filled - $0.read <= most }) { $0.filled })
  }

  /// Hands over what is in the piece that ``free()`` has given; it is not changed from then on.
  func handOver(_ count: Int) {
    let isFirst = state.withLock { state in
      state.counts[state.filled % pieces] = count
      state.filled += 1
      return state.filled - state.read == 1
    }
    if isFirst { state.wake() }
  }

  /// Says that nothing more will come.
  func end() {
    state.change { $0.isOver = true }
  }

  /// Reads piece after piece until nothing more comes.
  func readAll(_ body: (UnsafeRawBufferPointer) -> Void) {
    while let next = next() {
      body(next)
      let isHalfFree = state.withLock { state in
        state.read += 1
        return state.filled - state.read == pieces / 2
      }
      if isHalfFree { state.wake() }
    }
  }

  private func next() -> UnsafeRawBufferPointer? {
    state.wait(until: { $0.filled > $0.read || $0.isOver }) { state in
      guard state.filled > state.read else { return nil }
      return UnsafeRawBufferPointer(rebasing: piece(state.read)[..<state.counts[state.read % pieces]])
    }
  }

  private func piece(_ number: Int) -> UnsafeMutableRawBufferPointer {
    let start = number % pieces * pieceSize
    return UnsafeMutableRawBufferPointer(rebasing: memory[start..<start + pieceSize])
  }
}

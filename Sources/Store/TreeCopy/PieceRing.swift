// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc

/// Pieces of memory that one thread fills and another reads, in their order and round again.
///
/// It is safe to send: everything in it is read and written only under the lock, which is made before and
/// unmade after anybody can use it. A piece itself is the one thread's until it is handed over, and only read
/// from then until the other has done with it.
final class PieceRing: @unchecked Sendable {
  private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  private let memory: UnsafeMutableRawBufferPointer
  private let pieceSize: Int
  /// How much is in each piece.
  private var counts: [Int]
  /// How many pieces were handed over until now, and how many of those have been read.
  private var filled = 0
  private var read = 0
  private var isOver = false

  /// `memory`, which outlives it, is divided into so many pieces.
  init(_ memory: UnsafeMutableRawBufferPointer, pieces: Int) {
    self.memory = memory
    pieceSize = memory.count / pieces
    counts = Array(repeating: 0, count: pieces)
    pthread_mutex_init(lock, nil)
    pthread_cond_init(changed, nil)
  }

  deinit {
    pthread_cond_destroy(changed)
    pthread_mutex_destroy(lock)
    changed.deallocate()
    lock.deallocate()
  }

  /// The piece that is to be filled next; waits, where none is free, until half of them are: to wake up for
  /// each would cost more than to fill it.
  func free() -> UnsafeMutableRawBufferPointer {
    pthread_mutex_lock(lock)
    defer { pthread_mutex_unlock(lock) }
    if filled - read == counts.count {
      while filled - read > counts.count / 2 { pthread_cond_wait(changed, lock) }
    }
    return piece(filled)
  }

  /// Hands over what is in the piece that ``free()`` has given; it is not changed from then on.
  func handOver(_ count: Int) {
    pthread_mutex_lock(lock)
    defer { pthread_mutex_unlock(lock) }
    counts[filled % counts.count] = count
    filled += 1
    if filled - read == 1 { pthread_cond_signal(changed) }
  }

  /// Says that nothing more will come.
  func end() {
    pthread_mutex_lock(lock)
    defer { pthread_mutex_unlock(lock) }
    isOver = true
    pthread_cond_signal(changed)
  }

  /// Reads piece after piece until nothing more comes.
  func readAll(_ body: (UnsafeRawBufferPointer) -> Void) {
    while let next = next() {
      body(next)
      pthread_mutex_lock(lock)
      read += 1
      if filled - read == counts.count / 2 { pthread_cond_signal(changed) }
      pthread_mutex_unlock(lock)
    }
  }

  private func next() -> UnsafeRawBufferPointer? {
    pthread_mutex_lock(lock)
    defer { pthread_mutex_unlock(lock) }
    while filled == read, !isOver { pthread_cond_wait(changed, lock) }
    guard filled > read else { return nil }
    return UnsafeRawBufferPointer(rebasing: piece(read)[..<counts[read % counts.count]])
  }

  private func piece(_ number: Int) -> UnsafeMutableRawBufferPointer {
    let start = number % counts.count * pieceSize
    return UnsafeMutableRawBufferPointer(rebasing: memory[start..<start + pieceSize])
  }
}

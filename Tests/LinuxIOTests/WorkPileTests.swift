// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Synchronization
internal import Testing

@Suite struct WorkPileTests {
  /// Each piece makes two of the next size, so the pieces of all sizes are a power of two.
  @Test func allWorkIsDoneOnce() {
    for _ in 0..<50 {
      let pile = WorkPile([10])
      let done = Atomic<Int>(0)
      pile.work(name: "test") {
        { (size: Int) in
          done.add(1, ordering: .relaxed)
          if size > 0 { pile.add([size - 1, size - 1]) }
        }
      }
      #expect(done.load(ordering: .relaxed) == 2047)
    }
  }

  @Test func nothingToDoEnds() {
    let pile = WorkPile<Int>([])
    pile.work(name: "test") { { _ in Issue.record("there is none") } }
  }

  @Test func lastInIsFirstOut() {
    let pile = WorkPile([1])
    #expect(pile.next(isDone: false) == 1)
    pile.add([2, 3])
    #expect(pile.next(isDone: true) == 3)
    #expect(pile.next(isDone: true) == 2)
    #expect(pile.next(isDone: true) == nil)
  }
}

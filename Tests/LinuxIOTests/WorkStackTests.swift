// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Synchronization
internal import Testing

@Suite struct WorkStackTests {
  /// Each piece makes two of the next size, so the pieces of all sizes are a power of two.
  @Test func allWorkIsDoneOnce() {
    for _ in 0..<50 {
      let stack = WorkStack([10])
      let done = Atomic<Int>(0)
      stack.work(name: "test") {
        { (size: Int) in
          done.add(1, ordering: .relaxed)
          if size > 0 { stack.add([size - 1, size - 1]) }
        }
      }
      #expect(done.load(ordering: .relaxed) == 2047)
    }
  }

  @Test func nothingToDoEnds() {
    let stack = WorkStack<Int>([])
    stack.work(name: "test") { { _ in Issue.record("there is none") } }
  }

  @Test func lastInIsFirstOut() {
    let stack = WorkStack([1])
    #expect(stack.next(isDone: false) == 1)
    stack.add([2, 3])
    #expect(stack.next(isDone: true) == 3)
    #expect(stack.next(isDone: true) == 2)
    #expect(stack.next(isDone: true) == nil)
  }
}

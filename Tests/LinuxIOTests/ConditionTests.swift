// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Synchronization
internal import Testing

@Suite struct ConditionTests {
  @Test func whoWaitsIsWokenByAChange() throws {
    let count = Condition(0)
    let hasSeen = Atomic<Bool>(false)
    let waiter = try JoinableThread(name: "waiter") {
      count.wait { $0 == 3 }
      hasSeen.store(true, ordering: .sequentiallyConsistent)
    }
    for _ in 0..<2 { count.change { $0 += 1 } }
    let wasEarly = hasSeen.load(ordering: .sequentiallyConsistent)
    #expect(!wasEarly)
    count.change { $0 += 1 }
    waiter.join()
    #expect(count.withLock { $0 } == 3)
  }

  @Test func waitsEndAfterTheirTime() {
    let isSet = Condition(false)
    let began = monotonicNanoseconds()
    #expect(!isSet.wait(milliseconds: 30) { $0 })
    #expect(monotonicNanoseconds() - began >= 30_000_000)
    isSet.change { $0 = true }
    #expect(isSet.wait(milliseconds: 0) { $0 })
    #expect(isSet.wait(milliseconds: 1_999) { $0 })
  }

  @Test func errorsPassThrough() {
    let value = Condition(1)
    #expect(throws: Errno.EBUSY) {
      try value.change { (value) throws(Errno) in
        value = 2
        throw .EBUSY
      }
    }
    #expect(value.withLock { $0 } == 2)
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Testing

/// Who does not get on is left alone, and nobody else.
struct LeftThreadTests {
  @Test func whatGetsOnIsWaitedFor() {
    #expect(LeftThread.value(milliseconds: 500) { _ in 1 } == 1)
    let end = monotonicNanoseconds() &+ 900_000_000
    let value = LeftThread.value(milliseconds: 500) { lives in
      while monotonicNanoseconds() < end {
        _ = Condition(()).wait(milliseconds: 50) { _ in false }
        lives()
      }
      return 2
    }
    #expect(value == 2)
  }

  @Test func whatDoesNotIsLeft() {
    let release = Condition(false)
    let done = Condition(0)
    for _ in 0..<2 {
      let value = LeftThread.value(milliseconds: 100) { _ in
        _ = release.wait(milliseconds: 30_000) { $0 }
        done.change { $0 += 1 }
        return 3
      }
      #expect(value == nil)
    }
    release.change { $0 = true }
    #expect(done.wait(milliseconds: 30_000) { $0 == 2 })
  }
}

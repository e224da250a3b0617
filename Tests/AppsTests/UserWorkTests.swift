// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Work of one user waits for nothing that another one holds.
@Suite struct UserWorkTests {
  private struct Seen {
    var names: [String] = []
    var isReleased = false
  }
  private let work = UserWork()
  private let seen = Condition(Seen())

  private func begin(_ line: UserWork.Line, _ name: String, hangs: Bool = false) {
    work.begin(for: line, as: name) { [seen] in
      seen.change { $0.names.append(name) }
      if hangs { _ = seen.wait(milliseconds: 60_000) { $0.isReleased } }
    }
  }

  private func sees(_ names: [String]) -> Bool {
    seen.wait(milliseconds: 20_000) { $0.names.sorted() == names }
  }

  @Test func whatHangsForOneHoldsUpNoOther() {
    defer { seen.change { $0.isReleased = true } }
    begin(.user(1000), "a", hangs: true)
    begin(.app("Applications/A.app"), "b", hangs: true)
    #expect(sees(["a", "b"]))
    // Those wait, the same work once.
    for name in ["c", "c", "d"] { begin(.user(1000), name) }
    begin(.user(1001), "e")
    begin(.app("Applications/B.app"), "f")
    #expect(sees(["a", "b", "e", "f"]))
    seen.change { $0.isReleased = true }
    #expect(sees(["a", "b", "c", "d", "e", "f"]))
  }

  @Test func eachUserIsWaitedForOnce() {
    defer { seen.change { $0.isReleased = true } }
    func begin(_ users: [UInt32], _ name: String, hangs: Bool = false) -> UserWork.Begun {
      work.begin(for: users, as: name) { [seen] user in
        seen.change { $0.names.append("\(name) \(user)") }
        if hangs, user == 1000 { _ = seen.wait(milliseconds: 60_000) { $0.isReleased } }
      }
    }
    #expect(begin([1000, 1001, 1002], "a", hangs: true).wait(milliseconds: 2000) == [1000])
    #expect(sees(["a 1000", "a 1001", "a 1002"]))
    // What hangs has been waited for by now; what is new takes the place of what waits.
    let (old, new) = (begin([1000, 1001], "b"), begin([1000, 1001], "b"))
    let began = monotonicNanoseconds()
    #expect(new.wait(milliseconds: 1000) == [1000])
    #expect(monotonicNanoseconds() &- began < 1_000_000_000)
    seen.change { $0.isReleased = true }
    #expect(begin([1000], "c").wait(milliseconds: 20_000) == [])
    for begun in [old, new] { #expect(begun.wait(milliseconds: 20_000) == []) }
    let names = seen.withLock { $0.names.filter { $0 == "b 1000" } }
    #expect(names == ["b 1000"])
  }

  @Test func nothingBeginsAtTheEnd() {
    defer { seen.change { $0.isReleased = true } }
    begin(.user(1000), "a", hangs: true)
    #expect(sees(["a"]))
    begin(.user(1000), "b")
    work.finish(milliseconds: 10)
    begin(.user(1001), "c")
    seen.change { $0.isReleased = true }
    // Returns when the first one has ended.
    let began = monotonicNanoseconds()
    work.finish(milliseconds: 20_000)
    #expect(monotonicNanoseconds() &- began < 15_000_000_000)
    #expect(seen.withLock { $0.names } == ["a"])
  }
}

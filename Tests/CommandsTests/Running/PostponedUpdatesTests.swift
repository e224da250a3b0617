// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Daemon
internal import Testing

/// When updates that could not be put in place are tried again.
struct PostponedUpdatesTests {
  @Test func thoseThatFailWaitLongerEachTime() {
    var postponed = PostponedUpdates()
    let shortest = PostponedUpdates.shortestPause
    func due(_ names: [String], _ now: UInt64) -> [String] { postponed.due(among: names, at: now) }
    func postpone(_ name: String, _ reason: String, _ now: UInt64) -> Bool {
      postponed.postpone(name, for: reason, at: now)
    }
    #expect(due(["a", "b", "c"], 0) == ["a", "b", "c"])
    #expect(postpone("a", "the disk is full", 0))
    #expect(postpone("b", "the disk is full", 1))
    // What has not failed comes first.
    #expect(due(["a", "b", "c"], shortest - 1) == ["c"])
    #expect(due(["a", "b", "c"], shortest) == ["c", "a"])
    #expect(due(["a", "b", "c"], shortest + 1) == ["c", "a", "b"])
    // The same is not said again.
    #expect(!postpone("a", "the disk is full", shortest))
    #expect(due(["a"], 3 * shortest - 1) == [])
    #expect(due(["a"], 3 * shortest) == ["a"])
    #expect(postpone("a", "it is damaged", 3 * shortest))
    // And it never waits for longer than a day.
    for _ in 0..<100 { _ = postponed.postpone("a", for: "it is damaged", at: 0) }
    #expect(due(["a"], PostponedUpdates.longestPause) == ["a"])
  }

  /// A name that waits no more says nothing of what may have it later.
  @Test func whatWaitsNoMoreIsForgotten() {
    var postponed = PostponedUpdates()
    _ = postponed.postpone("a", for: "the disk is full", at: 0)
    _ = postponed.postpone("b", for: "the disk is full", at: 0)
    let one = postponed.due(among: ["b"], at: 1)
    let both = postponed.due(among: ["a", "b"], at: 1)
    #expect(one == [] && both == ["a"])
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import LinuxIO
internal import Synchronization
internal import TestSupport
internal import Testing

/// As whom a thread's calls count, and for how long.
@Suite(.enabled(if: Program.isRoot, "becoming others needs root"))
struct ThreadIdentityTests {
  private static func isAs(_ uid: UInt32, _ gid: UInt32) -> Bool { clx_has_fs_ids(uid, gid) != 0 }

  /// Whether the thread has CAP_SYS_RESOURCE in force; nil where the machine does not let us have it.
  private static func mayExceedLimits() -> Bool? {
    func set(_ name: String) -> UInt64 {
      let text = FD.text(of: "/proc/thread-self/status", limit: 1 << 16) ?? ""
      let line = text.split(separator: "\n").first { $0.hasPrefix(name) }
      return line.flatMap { UInt64($0.split(separator: "\t").last ?? "", radix: 16) } ?? 0
    }
    guard set("CapPrm") & 1 << 24 != 0 else { return nil }
    return set("CapEff") & 1 << 24 != 0
  }

  @Test func lastsOnAThreadThatIsPrepared() throws {
    try JoinableThread.run(name: "identity") {
      try ThreadIdentity.prepare()
      let has = Self.mayExceedLimits()
      try ThreadIdentity.with(uid: 54321, gid: 54322, lasting: true) {
        #expect(Self.isAs(54321, 54322) && Self.mayExceedLimits() != true)
      }
      #expect(Self.isAs(54321, 54322))
      // One that does not last leaves what was.
      try ThreadIdentity.with(uid: 0, gid: 7, lasting: false) {
        #expect(Self.isAs(0, 7) && Self.mayExceedLimits() == has)
      }
      #expect(Self.isAs(54321, 54322) && Self.mayExceedLimits() != true)
      // A thread that it starts begins as the process.
      let child = Mutex(false)
      let thread = try JoinableThread(name: "child") {
        child.withLock { $0 = Self.isAs(0, 0) && Self.mayExceedLimits() == has }
      }
      thread.join()
      #expect(child.withLock { $0 })
      try ThreadIdentity.with(uid: 0, gid: 0, lasting: true) {
        #expect(Self.isAs(0, 0) && Self.mayExceedLimits() == has)
      }
    }
  }

  @Test func isOverOnAnyOtherThread() throws {
    try JoinableThread.run(name: "identity") {
      try ThreadIdentity.with(uid: 54321, gid: 54322, lasting: true) { #expect(Self.isAs(54321, 54322)) }
      #expect(Self.isAs(0, 0))
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import TestSupport
internal import Testing

/// What a system call changes that a worker has not come back from when it died.
struct PendingCallTests {
  private static let first: Int32 = 1
  private static let second: Int32 = 2
  private static let third: Int32 = 4

  private static func changes(_ call: Int, _ arguments: [UInt64] = []) -> Int32 {
    clx_call_changes(call, arguments + [UInt64](repeating: 0, count: 6 - arguments.count))
  }

  /// Whoever lets a daemon make another call says here what it changes.
  @Test func eachCallOfADaemonIsKnown() {
    var calls = [Int32](repeating: 0, count: 1024)
    let count = Int(clx_daemon_calls(1, &calls, UInt32(calls.count)))
    #expect(count > 100 && count < calls.count)
    let judged = [
      clx_filter_ioctl(), clx_filter_clone(), clx_filter_clone3(), clx_filter_prctl(), clx_filter_prlimit(),
      clx_filter_sched_getattr(), clx_filter_sched_setattr(), clx_filter_socket(), clx_filter_memfd_create(),
    ].map(Int.init)
    let unknown = (calls.prefix(count).map(Int.init) + judged).filter { Self.changes($0) < 0 }
    #expect(unknown == [])
    #expect(Self.changes(100_000) == -1)
  }

  @Test func whatIsChangedIsTheRightArgument() {
    #if arch(x86_64)
      let (copy, allocate, rename, link, symlink, open, unlink) = (326, 285, 316, 265, 266, 257, 263)
    #else
      let (copy, allocate, rename, link, symlink, open, unlink) = (285, 47, 276, 37, 36, 56, 35)
    #endif
    #expect(Self.changes(copy) == Self.third)
    #expect(Self.changes(allocate) == Self.first && Self.changes(unlink) == Self.first)
    #expect(Self.changes(rename) == Self.first | Self.third)
    #expect(Self.changes(link) == Self.third && Self.changes(symlink) == Self.second)
    #expect(Self.changes(open) == 0)
    #expect(Self.changes(open, [0, 0, UInt64(O_CREAT)]) == Self.first)
    #expect(Self.changes(open, [0, 0, UInt64(O_TRUNC)]) == Self.first)
    // FICLONE, and a question.
    #expect(Self.changes(Int(clx_filter_ioctl()), [3, 0x4004_9409]) == Self.first)
    #expect(Self.changes(Int(clx_filter_ioctl()), [3, 0x8008_6601]) == 0)
    // A page that is not in memory.
    #expect(Self.changes(-1) == 0)
  }
}

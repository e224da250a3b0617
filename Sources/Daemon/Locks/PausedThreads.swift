// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

/// Threads of strangers that are made to leave their call of the kernel for a moment.
///
/// The kernel lets go of the locks of the call, and begins it again afterwards. The thread and its parent
/// notice nothing. Corresponds to `ptrace(2)`: only for a process that has one thread and ends soon, which
/// lets them go if nothing else does.
struct PausedThreads: ~Copyable {
  private let paused: [Int32]
  /// Those that did not leave it.
  let others: [WaitingThread]

  private static let (seize, interrupt, detach): (Int32, Int32, Int32) = (0x4206, 0x4207, 17)
  private static let allKinds = Int32(bitPattern: 0x4000_0000)

  init(_ threads: [WaitingThread], until end: UInt64) {
    var (paused, others): ([Int32], [WaitingThread]) = ([], [])
    for thread in threads {
      if Self.pause(thread, until: end) { paused.append(thread.thread) } else { others.append(thread) }
    }
    (self.paused, self.others) = (paused, others)
  }

  /// Lets them go, and not before: nothing else says how long this lives.
  consuming func end() {}

  deinit { for thread in paused { _ = clx_ptrace(Self.detach, thread, 0) } }

  private static func pause(_ waiting: WaitingThread, until end: UInt64) -> Bool {
    let thread = waiting.thread
    // Another one of us may have it.
    while clx_ptrace(seize, thread, 0) != 0 {
      if errno != EPERM || millisecondsLeft(until: end) == 0 { return errno == ESRCH }
      pauseThread(milliseconds: 20)
    }
    guard clx_ptrace(interrupt, thread, 0) == 0 else { return true }
    let last = min(end, monotonicNanoseconds() + 300_000_000)
    while true {
      var status: Int32 = 0
      // It has stopped, or ended.
      if waitpid(thread, &status, WNOHANG | allKinds) != 0 { return true }
      // It is let go when this process ends. One that has left its call, and has no processor yet, stops.
      if millisecondsLeft(until: last) == 0 {
        if waiting.again != nil { return false }
        if millisecondsLeft(until: end) == 0 { return true }
      }
      pauseThread(milliseconds: 2)
    }
  }
}

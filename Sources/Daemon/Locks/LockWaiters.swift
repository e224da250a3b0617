// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

// Threads of programs that wait for a lock of the mount.
//
//  1. The kernel takes locks of the mount's own files and directories before it sends a request. Whoever
//     waits for one of those has sent none: no thread of ours waits, and only a look at the threads of all
//     processes tells.
//  2. Such a look reads a line for each thread. So it takes at most a hundredth of one processor, and is left
//     out where the machine's load is nothing: a thread that waits so counts in the load.
//  3. It tells which threads wait whatever signal comes, and no more. What for is told by their stacks, and
//     another process reads those (`LockHolderSearch`).

/// Tells which threads of the machine have waited uninterruptibly for some time.
struct LockWaiters {
  struct Thread: Hashable {
    let process: Int32
    let thread: Int32
  }
  /// Since when each waits, by our looks.
  private var waiting: [Thread: UInt64] = [:]
  private var nextLook: UInt64 = 0

  private static let leastLoad = 2
  private static let looksApart: UInt64 = 100

  /// Whether somebody waits.
  var isUrgent: Bool { !waiting.isEmpty }

  /// Looks once; the result is those that have waited for some nanoseconds.
  mutating func look(since nanoseconds: UInt64) -> [Thread] {
    #if DEBUG
      // Tests that run beside each other have such threads of their own.
      guard getenv("INSULA_LOCK_HOLDERS") != nil else { return [] }
    #endif
    let begin = monotonicNanoseconds()
    if begin < nextLook { return [] }
    guard Self.mayWait else {
      waiting = [:]
      return []
    }
    var next: [Thread: UInt64] = [:]
    for process in ProcessID.numbers(in: "/proc") {
      for thread in ProcessID.numbers(in: "/proc/\(process)/task") {
        guard Self.isUninterruptible("/proc/\(process)/task/\(thread)/stat") else { continue }
        let thread = Thread(process: process, thread: thread)
        next[thread] = waiting[thread] ?? begin
      }
    }
    waiting = next
    let end = monotonicNanoseconds()
    nextLook = end &+ (end &- begin) &* Self.looksApart
    return next.filter { end &- $0.value >= nanoseconds }.map(\.key)
  }

  /// Whether the load of the last minute is more than nothing, in hundredths; one thread that waits for five
  /// seconds makes eight of them.
  private static var mayWait: Bool {
    guard let first = FD.text(of: "/proc/loadavg", limit: 256)?.parts(between: " ").first else { return true }
    return (Int(String(first.filter { $0 != "." })) ?? .max) >= leastLoad
  }

  /// Whether a thread is in such a wait, by the line that the kernel has of it: the state comes after its
  /// name, which may have anything in it.
  private static func isUninterruptible(_ path: String) -> Bool {
    guard let line = FD.text(of: path, limit: 1024), let end = line.utf8.lastIndex(of: UInt8(ascii: ")"))
    else {
      return false
    }
    return line.utf8[end...].dropFirst(2).first == UInt8(ascii: "D")
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

// Locks of backing files that users hold in the kernel.
//
//  1. With passthrough the kernel reads and writes a backing file with the memory of the program that asks
//     for it, and holds the file's lock meanwhile. That memory may be a file of a filesystem of the user's
//     own that never answers. So a user holds the lock for as long as they like, and what waits for it can't
//     be ended: threads of a worker, also of one that has died, and what waits for what those hold.
//     Locks of the mount's own files and directories are held so too, and one of its files by splice(2) from
//     a pipe that is empty. Then programs wait that want to remove that file, or to rename anything.
//  2. Other rules keep most of that from others (`StalledUsers`, `DyingWorker`). This one ends it: the keeper
//     looks at the threads of its workers every few seconds, and at those of others (``LockWaiters``). If one
//     does not get on for some seconds, it has another process look for who holds a file so
//     (``LockHolderSearch``).
//  3. That is another process since looking at strangers' processes may take long, and since the keeper has
//     one thread. It has no descriptor of ours.

/// Watches for threads that wait for locks which users hold.
final class LockWatch {
  private let holders: LockHolders
  /// Threads that wait, and since when by our looks.
  private var waiting: [WaitingThread: UInt64] = [:]
  private var others = LockWaiters()
  private var search: (process: Int32, end: UInt64)?
  /// When another search may begin: what waits may wait for something else for long.
  private var nextSearch: UInt64 = 0
  /// How long it takes until then; longer where nobody was found: others wait for disks and servers, too.
  private var apart = LockWatch.leastApart

  private static let nanosecondsOfWait: UInt64 = 2_000_000_000
  private static let nanosecondsOfSearch: UInt64 = 20_000_000_000
  private static let leastApart: UInt64 = 3_000_000_000
  private static let longestApart: UInt64 = 48_000_000_000

  init(_ holders: LockHolders) { self.holders = holders }

  /// Whether the next look is due in a second.
  var isUrgent: Bool { !waiting.isEmpty || others.isUrgent || search != nil }

  /// Looks at the threads of workers once, and at those of others.
  func look(at workers: [Int32]) {
    if let running = search {
      // Nobody waits for one that hangs itself.
      if millisecondsLeft(until: running.end) == 0 { kill(running.process, SIGKILL) }
      var status: Int32 = 0
      if waitpid(running.process, &status, WNOHANG) == 0 { return }
      search = nil
      let hasFound = clx_exit_status(status) == LockHolderSearch.hasFound
      apart = hasFound || !waiting.isEmpty ? Self.leastApart : min(2 * apart, Self.longestApart)
      nextSearch = monotonicNanoseconds() + apart
    }
    let now = monotonicNanoseconds()
    let found = workers.flatMap(WaitingThread.uninterruptible).filter(\.mayWaitForLock)
    var next: [WaitingThread: UInt64] = [:]
    for thread in found { next[thread] = waiting[thread] ?? now }
    waiting = next
    let stuck = next.filter { now - $0.value >= Self.nanosecondsOfWait }.map(\.key)
    let strangers = others.look(since: Self.nanosecondsOfWait)
    // Nobody waits any more for what was not found.
    if waiting.isEmpty, !others.isUrgent { apart = Self.leastApart }
    if !stuck.isEmpty || !strangers.isEmpty, now >= nextSearch { begin(stuck, strangers) }
  }

  private func begin(_ stuck: [WaitingThread], _ strangers: [LockWaiters.Thread]) {
    let child = clx_fork()
    if child == 0 {
      // None of ours may be held by a process that is in nobody's way.
      _ = clx_close_range(3, .max, 0)
      _exit(LockHolderSearch(holders, stuck, strangers).run() ? LockHolderSearch.hasFound : 0)
    }
    if child > 0 { search = (child, monotonicNanoseconds() + Self.nanosecondsOfSearch) }
  }
}

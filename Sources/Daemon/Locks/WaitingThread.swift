// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

/// A thread that waits in the kernel, as it was at one moment.
///
/// Corresponds to `/proc/PID/task/TID/stack`, which root alone may read.
struct WaitingThread: Hashable {
  let process: Int32
  let thread: Int32
  /// How often it has waited.
  ///
  /// The same number later means that it still waits for the same.
  private let switches: String
  /// The functions that it is in, the innermost first.
  private let stack: String

  /// Nil if it runs, has ended, or can't be looked at.
  ///
  /// Reading the stack of a process that executes another program may take as long as that process likes.
  init?(_ process: Int32, _ thread: Int32) {
    let path = "\(process)/task/\(thread)"
    guard let switches = ProcessID.field("voluntary_ctxt_switches", of: path),
      let stack = FD.text(of: "/proc/\(path)/stack", limit: 1 << 14), !stack.isEmpty
    else { return nil }
    self.process = process
    self.thread = thread
    self.switches = String(switches)
    self.stack = stack
  }

  /// The same thread now; nil if it has got on since.
  var again: WaitingThread? { WaitingThread(process, thread).flatMap { $0 == self ? $0 : nil } }

  /// Whether it is in the kernel's own read or write of a backing file, and waits there for its own memory.
  ///
  /// The file's lock is held meanwhile. Functions that are called from other files of the kernel have their
  /// names in each build of it.
  var holdsBackingFile: Bool {
    let isPassedThrough = stack.includes("fuse_passthrough_") || stack.includes("backing_file_")
    let waitsForMemory = stack.includes("handle_mm_fault") || stack.includes("handle_userfault")
    return isPassedThrough && waitsForMemory
  }

  /// Whether it waits for a lock, as far as that can be told.
  ///
  /// The kernel leaves out its functions for locks: the innermost one is then what wanted the lock. Where a
  /// device, a server or a journal is waited for, that is a function that waits.
  var mayWaitForLock: Bool {
    guard let first = stack.parts(between: "\n").first else { return false }
    return !String(first).includes("wait")
  }

  /// The threads of a process that are in an uninterruptible wait.
  static func uninterruptible(of process: Int32) -> [WaitingThread] {
    ProcessID.numbers(in: "/proc/\(process)/task").compactMap { thread in
      guard let state = ProcessID.field("State", of: "\(process)/task/\(thread)"), state.hasPrefix("D") else {
        return nil
      }
      return WaitingThread(process, thread)
    }
  }

  /// All threads of a process that wait.
  static func all(of process: Int32) -> [WaitingThread] {
    ProcessID.numbers(in: "/proc/\(process)/task").compactMap { WaitingThread(process, $0) }
  }
}

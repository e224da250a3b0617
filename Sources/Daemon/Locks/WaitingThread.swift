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

  /// Nil if it runs, or would run had it a processor; if it has ended, or can't be looked at.
  ///
  /// One that was woken has the stack of its wait until it runs, which takes long on a busy machine.
  /// Reading the stack of a process that executes another program may take as long as that process likes.
  init?(_ process: Int32, _ thread: Int32) {
    let path = "\(process)/task/\(thread)"
    guard let switches = ProcessID.field("voluntary_ctxt_switches", of: path),
      let stack = FD.text(of: "/proc/\(path)/stack", limit: 1 << 14), !stack.isEmpty,
      ProcessID.field("State", of: path)?.hasPrefix("R") == false
    else { return nil }
    self.process = process
    self.thread = thread
    self.switches = String(switches)
    self.stack = stack
  }

  /// The same thread now; nil if it has got on since.
  var again: WaitingThread? { WaitingThread(process, thread).flatMap { $0 == self ? $0 : nil } }

  /// What a thread waits for while it has the lock of a file or directory.
  enum Hold {
    /// Its own memory, which may be a file that never comes.
    case memory
    /// Something that others write into a pipe.
    case pipe
  }

  /// Nil if it holds none, as far as that can be told.
  ///
  /// Functions that are called from other files of the kernel have their names in each build of it.
  var hold: Hold? {
    let functions = stack.parts(between: "\n").map { String($0) }
    let fault = functions.lastIndex { $0.includes("handle_mm_fault") || $0.includes("handle_userfault") }
    if let fault {
      // It is made to wait since it uses much memory. That ends, as it does with other filesystems' locks.
      if stack.includes("mem_cgroup") { return nil }
      // By what the fault was made: what it waits for may be a file of such a filesystem, too.
      return functions[fault...].contains { name in Self.holding.contains { name.includes($0) } }
        ? .memory : nil
    }
    return stack.includes("fuse_passthrough_splice_write") && stack.includes("iter_file_splice_write")
      ? .pipe : nil
  }

  /// Reads and writes of files, which fill the memory of the program while the file's lock is held, and
  /// listings.
  private static let holding = ["fuse_", "backing_file_", "iterate_dir"]

  /// Whether it waits for the lock of a file or directory, or of all renames.
  var waitsForFile: Bool { mayWaitForLock && Self.waiting.contains { stack.includes($0) } }

  /// What looks for names, and changes what they stand for.
  private static let waiting = [
    "vfs_", "do_renameat", "do_unlinkat", "do_rmdir", "do_linkat", "filename_create", "path_openat", "lookup",
    "iterate_dir", "do_truncate", "chown_common", "chmod_common", "xattr", "fuse_",
  ]

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

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

/// Where all processes of the machine have their working directories on one filesystem.
///
/// It is read from what the kernel has in memory: no FUSE daemon is asked, so that the filesystem may be our
/// own. A kernel that is a network filesystem's client may ask its server for the working directories that
/// are there, and wait for it: so no thread should read this for which others wait without a limit.
package struct WorkingDirectories: Sendable {
  /// By inode number the process that is there; 0 if there are several.
  private var processes: [UInt64: Int32] = [:]

  /// The numbers of all those directories.
  package var inodes: Dictionary<UInt64, Int32>.Keys { processes.keys }

  /// Whether nobody is in a directory but the process that has this thread.
  package func isOnly(_ thread: Int32, in inode: UInt64) -> Bool {
    guard let process = processes[inode] else { return true }
    return process > 0 && thread > 0 && access("/proc/\(process)/task/\(thread)", F_OK) == 0
  }

  /// Looks at every thread, since a thread can have a working directory of its own.
  ///
  /// Nil if not all can be looked at, or they are too many to be looked at in time. `isFirstElsewhere` says
  /// that the machine's first process is not there, which some machines let nobody look at.
  package static func read(
    on device: DeviceNumber, isFirstElsewhere: Bool, milliseconds: UInt64
  ) -> WorkingDirectories? {
    guard seesAll else { return nil }
    let end = monotonicNanoseconds() &+ milliseconds &* 1_000_000
    var found = WorkingDirectories()
    var known: Set<Int32> = []
    // Until there is none that has come meanwhile: it may be the child of one that has gone.
    while true {
      guard let processes = numbers(in: "/proc") else { return nil }
      let new = processes.filter { known.insert($0).inserted }
      if new.isEmpty { return found }
      for process in new {
        guard found.look(at: process, device) || process == 1 && isFirstElsewhere,
          monotonicNanoseconds() < end
        else { return nil }
      }
    }
  }

  /// False if it may not be looked at.
  private mutating func look(at process: Int32, _ device: DeviceNumber) -> Bool {
    // One that has ended has no directory any more.
    for thread in Self.numbers(in: "/proc/\(process)/task") ?? [] {
      switch Self.status("/proc/\(process)/task/\(thread)/cwd") {
      case .found(let status):
        guard status.stx_dev_major == device.major, status.stx_dev_minor == device.minor else { continue }
        let known = processes[status.stx_ino]
        processes[status.stx_ino] = known == nil || known == process ? process : 0
      case .ended: continue
      case .refused: return false
      }
    }
    return true
  }

  /// Whether no process is hidden from this thread: neither in a process namespace above its own, nor by how
  /// /proc is mounted.
  private static var seesAll: Bool {
    // The numbers of the first namespaces are the kernel's own.
    for (kind, number) in [("pid", "4026531836"), ("user", "4026531837")] {
      let target = try? FD.cwd.linkTarget(of: "/proc/self/ns/\(kind)")
      guard target == Array("\(kind):[\(number)]".utf8) else { return false }
    }
    let capabilities = ProcessID.field("CapEff", of: "thread-self").flatMap { UInt64($0, radix: 16) } ?? 0
    // Corresponds to `CAP_SYS_PTRACE`.
    return capabilities & 1 << 19 != 0
  }

  private enum Answer {
    case found(ExtendedStatus)
    case ended
    case refused
  }

  private static func status(_ path: String) -> Answer {
    let dontSync: Int32 = 0x4000
    var status = ExtendedStatus()
    if clx_statx(AT_FDCWD, path, dontSync, 0, &status) == 0 { return .found(status) }
    let error = Errno.last
    return error == .EACCES || error == .EPERM ? .refused : .ended
  }

  private static func numbers(in path: String) -> [Int32]? {
    guard let directory = try? FD.cwd.openFollowing(path, O_RDONLY | O_DIRECTORY),
      let entries = try? directory.fd.entries()
    else { return nil }
    return entries.compactMap { Int32(String(decoding: $0.name, as: UTF8.self)) }
  }
}

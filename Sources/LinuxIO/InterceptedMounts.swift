// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

/// The mounts that a program wants to make, about which another process decides: such a program needs no
/// rights.
///
/// Corresponds to `seccomp_unotify(2)`.
package final class InterceptedMounts {
  private let listener: OwnedFD

  /// What ``begin()`` gave in the program's process.
  package init(_ listener: consuming OwnedFD) { self.listener = listener }

  package var fd: FD { listener.fd }

  /// From here on each `mount(2)` of this process, and of what it starts, waits for an answer; the descriptor
  /// is for whoever gives that.
  package static func begin() throws(Errno) -> OwnedFD {
    OwnedFD(owning: try check(clx_intercept_mounts()))
  }

  /// A mount that waits for an answer.
  package struct Call {
    fileprivate let number: UInt64
    package let thread: Int32
  }

  /// The next one; ENOENT if its thread has ended meanwhile.
  package func next() throws(Errno) -> Call {
    var number: UInt64 = 0
    var thread: pid_t = 0
    try check(clx_next_intercepted(listener.fd.raw, &number, &thread))
    return Call(number: number, thread: thread)
  }

  /// Gives what the program has opened of /dev/fuse a connection of ours, for all of its processes that share
  /// it.
  package func join(_ descriptor: Int32, of call: Call, to ours: FD) throws(Errno) {
    try check(clx_join_connection(call.thread, descriptor, ours.raw))
  }

  /// Puts a descriptor of ours in the place of one that the program has.
  package func replace(_ descriptor: Int32, of call: Call, by ours: FD) throws(Errno) {
    try check(clx_replace_descriptor(listener.fd.raw, call.number, ours.raw, descriptor))
  }

  /// Lets the program go on, as if it had mounted or failed so.
  package func answer(_ call: Call, _ error: Errno?) {
    // If it has ended meanwhile, nobody waits.
    _ = clx_answer_intercepted(listener.fd.raw, call.number, error?.code ?? 0)
  }

  /// The descriptors of a thread that have this path, as far as we may see them.
  package static func descriptors(of thread: Int32, at path: String) -> [Int32] {
    guard let directory = try? FD.cwd.openFollowing("/proc/\(thread)/fd", O_RDONLY | O_DIRECTORY),
      let entries = try? directory.fd.entries()
    else { return [] }
    return entries.compactMap { entry in
      guard let target = try? directory.fd.linkTarget(of: entry.name), target.elementsEqual(path.utf8) else {
        return nil
      }
      return Int32(String(decoding: entry.name, as: UTF8.self))
    }
  }
}

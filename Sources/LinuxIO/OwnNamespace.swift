// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

/// What a process does to itself before it starts another that is to see less than it does.
///
/// Only for a process of one thread.
package enum OwnNamespace {
  /// Enters a user namespace, in which we may mount, and a mount namespace that nobody else is in.
  ///
  /// What is mounted elsewhere from now on may still appear in it; what is mounted in it is seen by nobody
  /// else. EPERM and ENOSPC say that the machine does not let ordinary users do that. Corresponds to
  /// `unshare(2)`.
  package static func enter() throws(Errno) {
    let (user, group) = (ProcessID.user, ProcessID.group)
    // Who runs a program that they can't read may not write to their own files in /proc. Corresponds to
    // PR_SET_DUMPABLE.
    try check(clx_prctl(4, 1))
    try check(clx_unshare(CLX_CLONE_NEWUSER | CLX_CLONE_NEWNS))
    try write("deny", to: "setgroups")
    try write("\(user) \(user) 1", to: "uid_map")
    try write("\(group) \(group) 1", to: "gid_map")
    try check(mount(nil, "/", nil, UInt(MS_REC) | UInt(MS_SLAVE), nil))
  }

  /// Enters a mount namespace that nobody else is in, as root may; otherwise with a user namespace as well.
  package static func enterMounts() throws(Errno) {
    guard ProcessID.user == 0, clx_unshare(CLX_CLONE_NEWNS) == 0 else { return try enter() }
    try check(mount(nil, "/", nil, UInt(MS_REC) | UInt(MS_SLAVE), nil))
  }

  /// From here on the next process that we start, and only that one, is the first of a namespace of
  /// processes: when it ends, by whatever, the kernel ends all that it has started.
  package static func countProcessesAnew() throws(Errno) { try check(clx_unshare(CLX_CLONE_NEWPID)) }

  private static func write(_ text: String, to name: String) throws(Errno) {
    let file = try FD.cwd.openFollowing("/proc/self/\(name)", O_WRONLY)
    try file.fd.writeAll(text.utf8)
  }

  /// Mounts an empty filesystem in memory over a directory; nothing in it can be run.
  package static func mountMemory(at path: String) throws(Errno) {
    try check(mount("insula", path, "tmpfs", memoryFlags, "mode=0755"))
  }

  private static let memoryFlags = UInt(MS_NOSUID) | UInt(MS_NODEV) | UInt(MS_NOEXEC)

  /// Sets how much such a filesystem may hold.
  package static func limitMemory(at path: String, to bytes: Int64) throws(Errno) {
    try check(mount("insula", path, "tmpfs", memoryFlags | UInt(MS_REMOUNT), "size=\(bytes)"))
  }

  /// From here on neither this process nor those that it starts reach others by signals or by sockets without
  /// a place in the file tree, unless those are its own; false where the kernel can't do that (before Linux
  /// 6.12).
  ///
  /// Corresponds to `landlock_restrict_self(2)`.
  package static func stayAmongOurselves() -> Bool {
    clx_landlock_scope(UInt64(CLX_LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | CLX_LANDLOCK_SCOPE_SIGNAL)) == 0
  }

  /// Descriptors that whoever started us happened to have open stay with us.
  ///
  /// Corresponds to `close_range(2)`.
  package static func keepDescriptors() throws(Errno) {
    let closeOnExec: UInt32 = 1 << 2
    try check(clx_close_range(3, UInt32.max, closeOnExec))
  }
}

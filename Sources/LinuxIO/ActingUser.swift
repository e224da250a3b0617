// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

/// Someone else, as whom root's command goes on.
///
/// What that user's own processes can reach of ours is theirs from then on: descriptors (`pidfd_getfd(2)`,
/// `/proc/PID/fd`), variables, memory (`ptrace(2)`), keys. So root takes nothing along but the three standard
/// streams: this program starts once more as that user, and only then connects, opens and asks.
///
/// Only for a process of one thread.
package enum ActingUser {
  /// EBUSY if there are other threads: they would keep root's rights until the program starts, and no fork
  /// has them.
  package static func requireOneThread() throws(Errno) {
    // Each has a directory there.
    let threads = try FD.cwd.openFollowing("/proc/self/task", O_RDONLY | O_DIRECTORY)
    guard try threads.fd.status().st_nlink == 3 else { throw .EBUSY }
  }

  /// Starts this program once more, as that user; throws if it can't, and then this process must end.
  ///
  /// EBUSY if it has other threads.
  package static func become(
    _ account: Account, arguments: [String], environment: [String: String]
  ) throws(Errno) -> Never {
    try requireOneThread()
    try OwnNamespace.keepDescriptors()
    // The working directory would be a way past what is closed above it.
    try check(chdir("/"))
    try account.name.withName { (name) throws(Errno) in
      _ = try check(clx_initgroups(name.bytes, account.gid))
    }
    try check(clx_become(account.uid, account.gid))
    // Root's session has keys, which its processes may read. Without keys in the kernel there are none to
    // leave behind.
    _ = clx_join_new_session_keyring()
    let words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
    let variables: [UnsafeMutablePointer<CChar>?] =
      environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
    defer { for string in words + variables { free(string) } }
    _ = execve("/proc/self/exe", words, variables)
    throw Errno.last
  }
}

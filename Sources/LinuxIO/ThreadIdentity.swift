// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

/// Makes new objects belong to someone else, on this thread only, for the duration of `body`.
///
/// The thread keeps its capabilities (see ``ThreadIdentity/prepare()``), so nothing but the owner changes, and an
/// object never exists with a wrong one.
package enum ThreadIdentity {
  /// Lets a later change of the filesystem ids leave the capabilities alone.
  ///
  /// Once per thread.
  package static func prepare() throws(Errno) {
    let prSetSecurebits: Int32 = 28
    let secbitNoSetuidFixup: UInt = 1 << 2
    try check(clx_prctl(prSetSecurebits, secbitNoSetuidFixup))
  }

  /// Corresponds to `setfsuid(2)` and `setfsgid(2)` around `body`.
  @inline(__always)
  package static func with<Result: ~Copyable>(
    uid: UInt32, gid: UInt32, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    clx_set_fs_ids(uid, gid)
    defer { clx_set_fs_ids(0, 0) }
    return try body()
  }
}

/// Someone as whom files are read, on threads that do nothing else for long.
///
/// While it counts, the thread may open only what that user may: root's rights over files are not in force.
package struct ReaderIdentity: Equatable, Sendable {
  package let uid: UInt32
  package let gid: UInt32
  package let groups: [UInt32]

  package init(uid: UInt32, gid: UInt32, groups: [UInt32]) {
    self.uid = uid
    self.gid = gid
    self.groups = groups
  }

  /// Readies this thread, which must be one of ours that ends when its work is done: it keeps the groups until then.
  ///
  /// Throws where the identity can't be taken on.
  package func prepareThread() throws(Errno) {
    // A thread begins with what the one that made it had; with this bit set the capabilities would stay.
    let prGetSecurebits: Int32 = 27
    let prSetSecurebits: Int32 = 28
    if clx_prctl(prGetSecurebits, 0) != 0 { try check(clx_prctl(prSetSecurebits, 0)) }
    try check(groups.withUnsafeBufferPointer { clx_thread_setgroups($0.count, $0.baseAddress) })
    let isTaken = read { clx_has_fs_ids(uid, gid) != 0 }
    guard isTaken, clx_has_fs_ids(0, 0) != 0 else { throw .EPERM }
  }

  /// Does something as that user, on a thread that was made ready.
  @inline(__always)
  package func read<Result: ~Copyable, Failure: Error>(
    _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    clx_set_fs_ids(uid, gid)
    defer { clx_set_fs_ids(0, 0) }
    return try body()
  }
}

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

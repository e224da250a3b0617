// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

/// As whom this thread's calls count where that is more than a question of permission: whose a new object is,
/// and who may have the room on a disk that is kept for root.
///
/// The thread keeps the capabilities by which it passes permissions (see ``ThreadIdentity/prepare()``), so an
/// object never exists with a wrong owner.
package enum ThreadIdentity {
  /// Lets a later change of the filesystem ids leave the capabilities alone, and last until others are
  /// needed, if they may.
  ///
  /// Once per thread, which must be one of ours.
  package static func prepare(lasting: Bool = true) throws(Errno) {
    let prSetSecurebits: Int32 = 28
    let secbitNoSetuidFixup: UInt = 1 << 2
    try check(clx_prctl(prSetSecurebits, secbitNoSetuidFixup))
    clx_fs_ids().pointee.stay = lasting ? 1 : 0
  }

  /// Does something as a user.
  ///
  /// To change the ids takes longer than most of what is done with them, and who asks once asks again: where
  /// they may last, the thread keeps them afterwards. Nobody else may then depend on them, and all who do
  /// must ask here.
  @inline(__always)
  package static func with<Result: ~Copyable>(
    uid: UInt32, gid: UInt32, lasting: Bool, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    let before = clx_fs_ids().pointee
    if before.uid != uid || before.gid != gid { change(to: uid, gid) }
    defer { if before.stay == 0 || !lasting { change(to: before.uid, before.gid) } }
    return try body()
  }

  /// Does something without the right to leave set-user-id and set-group-id on a file that is written
  /// (`CAP_FSETID`), which an open file goes on with.
  package static func losingSetID<Result: ~Copyable>(
    _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    let keepSetID: UInt32 = 4
    _ = clx_set_effective(keepSetID, 0)
    defer { _ = clx_set_effective(keepSetID, 1) }
    return try body()
  }

  /// A thread begins as its maker was; whoever makes one says what to do about that.
  static var isOwn: Bool {
    let ids = clx_fs_ids().pointee
    return ids.uid == 0 && ids.gid == 0
  }

  /// Becomes the process's own user again, on a thread whose maker was somebody else.
  static func reset() {
    clx_set_fs_ids(0, 0)
    _ = clx_set_effective(systemResource, 1)
  }

  /// Corresponds to `setfsuid(2)` and `setfsgid(2)`, and for all but root to giving up `CAP_SYS_RESOURCE`: it
  /// passes by the limits of disks, as root's number does.
  private static func change(to uid: UInt32, _ gid: UInt32) {
    let ids = clx_fs_ids()
    let before = ids.pointee
    guard before.uid != uid || before.gid != gid else { return }
    clx_set_fs_ids(uid, gid)
    if (before.uid == 0) != (uid == 0) { _ = clx_set_effective(systemResource, uid == 0 ? 1 : 0) }
    ids.pointee.uid = uid
    ids.pointee.gid = gid
  }

  /// Corresponds to `CAP_SYS_RESOURCE`.
  fileprivate static var systemResource: UInt32 { 24 }
}

/// Someone as whom files are read, and perhaps written, on threads that do nothing else for long.
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

  /// Readies this thread, which must be one of ours that ends when its work is done: it keeps the groups
  /// until then.
  ///
  /// With `writing` the thread gives up for good what passes by the limits of disks. Throws where the
  /// identity can't be taken on.
  package func prepareThread(writing: Bool = false) throws(Errno) {
    // A thread begins with what the one that made it had; with this bit set the capabilities would stay.
    let prGetSecurebits: Int32 = 27
    let prSetSecurebits: Int32 = 28
    if clx_prctl(prGetSecurebits, 0) != 0 { try check(clx_prctl(prSetSecurebits, 0)) }
    try check(groups.withUnsafeBufferPointer { clx_thread_setgroups($0.count, $0.baseAddress) })
    let isTaken = read { clx_has_fs_ids(uid, gid) != 0 }
    guard isTaken, clx_has_fs_ids(0, 0) != 0 else { throw .EPERM }
    if writing { try check(clx_set_effective(ThreadIdentity.systemResource, 0)) }
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

  /// Writes something that is that user's, and takes their room on the disk, on a thread that was made ready
  /// for that.
  @inline(__always)
  package func write<Result: ~Copyable, Failure: Error>(
    _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result { try read(body) }
}

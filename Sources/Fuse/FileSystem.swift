// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO

/// A filesystem: one method for each operation that the kernel can ask for.
///
/// A method returns its answer or throws the errno; whoever calls it sends exactly one reply. Methods are
/// called from several threads at once. Names, buffers and writers are valid during the call only.
///
/// Lookups: each ``Entry`` with a node that is returned counts one lookup of that node, to be kept until
/// ``forget(_:count:)`` takes it back. When a reply can't be delivered, the caller of these methods gives the
/// lookup (or the handle) back itself.
package protocol FileSystem: AnyObject, Sendable {
  /// The connection is up; `connection` says what the kernel agreed to.
  func started(_ connection: any Connection)
  /// The kernel has been answered what it sent first, which whoever takes the connection over will need.
  func began(by message: [UInt8])
  /// The connection has ended, and none of its requests is being served.
  ///
  /// When this returns, nothing uses or retains it any more.
  func ended()

  /// Whether any requests have a queue of their own.
  var hasQueues: Bool { get }
  /// The queue for requests about an object, or for looking up a name in it, which may have to wait for a
  /// server.
  func queue(of node: NodeID, lookingUp name: Name?) -> RequestQueue?

  /// One more request that was sent again waits in a queue, or one less.
  func resentWait(by change: Int)
  /// Whether another worker has noted what it was about to change for a request that was sent again.
  func hasBegun(_ request: RequestID) -> Bool

  /// Where the session notes what it serves; nil where no other worker will follow.
  var served: ServedPlace? { get }
  /// Two workers have died by a request, and it is about to be answered with EIO.
  func gaveUp(_ request: RefusedRequest)

  /// A request is done that had been answered with an error before, since its caller was killed or nobody
  /// could wait: the kernel knows nothing of what it has changed.
  func answeredEarly()

  /// Whom to charge for what a user who asks makes grow.
  func payer(of user: UInt32) -> Payer

  /// A request was refused for a reason that was noted on this thread, and is about to be answered.
  func refused(_ request: RefusedRequest)
  /// A request has failed with `Errno.awaitsConsent`, and nothing has come of it; true if it was kept
  /// (``PostponableRequest/keep(for:in:)``), and whoever has it sees to it that it is answered.
  func postpone(_ request: PostponableRequest) -> Bool

  func lookup(_ name: Name, in parent: NodeID, by caller: Caller) throws(Errno) -> Entry
  func forget(_ node: NodeID, count: UInt64)

  /// With a handle, the kernel asks on its own behalf about an open file.
  func attributes(of node: NodeID, handle: HandleID?, by caller: Caller) throws(Errno) -> Attributes
  /// Fills in the 256 bytes of `struct statx` and tells for how long they hold.
  func extendedStatus(
    of node: NodeID, handle: HandleID?, into bytes: UnsafeMutableRawPointer, by caller: Caller
  ) throws(Errno) -> Double
  func setAttributes(
    of node: NodeID, handle: HandleID?, to change: AttributeChange, by caller: Caller
  ) throws(Errno) -> Attributes
  func access(_ node: NodeID, mask: Int32, by caller: Caller) throws(Errno)

  func readLink(_ node: NodeID, into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int
  func makeSymlink(
    _ name: Name, in parent: NodeID, to target: UnsafePointer<CChar>, by caller: Caller
  ) throws(Errno) -> Entry
  /// `device` counts where the mode is that of a device.
  func makeNode(
    _ name: Name, in parent: NodeID, mode: FileMode, device: UInt64, by caller: Caller
  ) throws(Errno) -> Entry
  func makeDirectory(_ name: Name, in parent: NodeID, mode: FileMode, by caller: Caller) throws(Errno)
    -> Entry
  func link(_ node: NodeID, as name: Name, in parent: NodeID, by caller: Caller) throws(Errno) -> Entry
  func remove(_ name: Name, in parent: NodeID, directory: Bool, by caller: Caller) throws(Errno)
  func rename(
    _ name: Name, in parent: NodeID, to newName: Name, in newParent: NodeID, flags: UInt32, by caller: Caller
  ) throws(Errno)

  /// Whether a caller may have changed an object that is to be written to the disk: a file through a handle,
  /// or a directory.
  func mayHaveChanged(_ node: NodeID, handle: HandleID?, _ caller: Caller) -> Bool
  /// Whether a rename between two directories may keep a CPU busy.
  func isLongRename(from parent: NodeID, to newParent: NodeID) -> Bool
  /// Whether reading an attribute may keep a CPU busy; it is asked only of the family `system.`.
  func isLongAttribute(_ name: Name) -> Bool

  /// `flags` are those of `open(2)`, the kernel's own bit for execve included.
  func open(_ node: NodeID, flags: Int32, clearsSetID: Bool, by caller: Caller) throws(Errno) -> Opened
  /// Like the one above; nil if the reply is sent later through `later`, because it takes long.
  func open(
    _ node: NodeID, flags: Int32, clearsSetID: Bool, by caller: Caller, later: LateOpen
  ) throws(Errno) -> Opened?
  func create(
    _ name: Name, in parent: NodeID, flags: Int32, mode: FileMode, by caller: Caller
  ) throws(Errno) -> (Entry, Opened)
  /// Corresponds to `O_TMPFILE`.
  func createUnnamed(
    in parent: NodeID, flags: Int32, mode: FileMode, by caller: Caller
  ) throws(Errno) -> (Entry, Opened)
  func read(
    _ node: NodeID, handle: HandleID, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer
  ) throws(Errno) -> Int
  func write(
    _ node: NodeID, handle: HandleID, at offset: Int64, from bytes: UnsafeRawBufferPointer,
    _ flags: WriteFlags, by caller: Caller
  ) throws(Errno) -> Int
  func flush(_ node: NodeID, handle: HandleID, owner: LockOwner) throws(Errno)
  func release(_ node: NodeID, handle: HandleID, flockOwner: LockOwner?)
  func synchronize(_ node: NodeID, handle: HandleID, dataOnly: Bool) throws(Errno)
  func allocate(
    _ node: NodeID, handle: HandleID, mode: Int32, offset: Int64, length: Int64, by caller: Caller
  ) throws(Errno)
  func seek(_ node: NodeID, handle: HandleID, offset: Int64, whence: Int32) throws(Errno) -> Int64
  func copyRange(
    from node: NodeID, _ handle: HandleID, at offset: Int64,
    to target: NodeID, _ targetHandle: HandleID, at targetOffset: Int64, length: Int, flags: UInt32,
    by caller: Caller
  ) throws(Errno) -> Int

  func openDirectory(_ node: NodeID, by caller: Caller) throws(Errno) -> Opened
  /// Fills `writer` with what comes after `offset`, until nothing more fits.
  func readDirectory(
    _ node: NodeID, handle: HandleID, after offset: Int64, into writer: inout DirectoryWriter,
    by caller: Caller
  ) throws(Errno)
  func releaseDirectory(_ node: NodeID, handle: HandleID)
  func synchronizeDirectory(_ node: NodeID, handle: HandleID, dataOnly: Bool) throws(Errno)

  func statistics(of node: NodeID) throws(Errno) -> FilesystemStatus

  /// With an empty buffer the next two tell the size.
  func attribute(
    _ name: Name, of node: NodeID, into buffer: UnsafeMutableRawBufferPointer, by caller: Caller
  ) throws(Errno) -> Int
  func attributeNames(
    of node: NodeID, into buffer: UnsafeMutableRawBufferPointer, by caller: Caller
  ) throws(Errno) -> Int
  func setAttribute(
    _ name: Name, of node: NodeID, to value: UnsafeRawBufferPointer, flags: Int32, by caller: Caller
  ) throws(Errno)
  func removeAttribute(_ name: Name, of node: NodeID, by caller: Caller) throws(Errno)

  /// The lock that stands against `wanted`, or one of kind none.
  func conflictingLock(
    _ node: NodeID, handle: HandleID, owner: LockOwner, wanted: LockRange
  ) throws(Errno) -> LockRange
  /// `parking` is nil where the caller does not want to wait.
  func setLock(
    _ node: NodeID, handle: HandleID, owner: LockOwner, to range: LockRange, parking: ParkingPlace?,
    by caller: Caller
  ) throws(Errno) -> LockOutcome
  func setFlock(
    _ node: NodeID, handle: HandleID, owner: LockOwner, to kind: LockRange.Kind, parking: ParkingPlace?,
    by caller: Caller
  ) throws(Errno) -> LockOutcome
  /// A request that was parked has been interrupted and answered; its place in the queue can go.
  func abandoned(_ reply: ParkedReply)

  /// Corresponds to the ioctls `FS_IOC_GETFLAGS` and `FS_IOC_SETFLAGS`.
  func inodeFlags(of node: NodeID, by caller: Caller) throws(Errno) -> UInt32
  func setInodeFlags(of node: NodeID, to flags: UInt32, by caller: Caller) throws(Errno)
}

extension FileSystem {
  /// A filesystem that tells nobody.
  package func refused(_ request: RefusedRequest) {}

  /// A filesystem that waits for no person.
  package func postpone(_ request: PostponableRequest) -> Bool { false }

  /// A filesystem that waits for no server.
  package var hasQueues: Bool { false }
  package func queue(of node: NodeID, lookingUp name: Name?) -> RequestQueue? { nil }

  /// A filesystem that nobody takes over.
  package func began(by message: [UInt8]) {}
  package func resentWait(by change: Int) {}
  package func hasBegun(_ request: RequestID) -> Bool { false }
  package var served: ServedPlace? { nil }
  package func gaveUp(_ request: RefusedRequest) {}

  package func answeredEarly() {}

  /// A filesystem that speaks to the kernel only while it serves a request.
  package func ended() {}

  /// A filesystem that all users share.
  package func payer(of user: UInt32) -> Payer { Payer(user: user) }

  /// A filesystem that never needs long to open a file.
  package func open(
    _ node: NodeID, flags: Int32, clearsSetID: Bool, by caller: Caller, later: LateOpen
  ) throws(Errno) -> Opened? {
    try open(node, flags: flags, clearsSetID: clearsSetID, by: caller)
  }
}

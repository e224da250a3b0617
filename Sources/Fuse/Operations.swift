// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CFuse
internal import Glibc
internal import LinuxIO

/// libfuse's table of callbacks; each finds its session, asks its filesystem, and sends one reply.
func makeOperations(_ settings: ConnectionSettings) -> fuse_lowlevel_ops {
  var table = fuse_lowlevel_ops()
  table.`init` = { _, connection in
    guard let connection else { return }
    wishes(&connection.pointee)
  }
  if settings.cachesLinks {
    table.`init` = { _, connection in
      guard let connection else { return }
      wishes(&connection.pointee)
      connection.pointee.want |= connection.pointee.capable & UInt32(FUSE_CAP_CACHE_SYMLINKS)
    }
  }
  addNameOperations(&table)
  addAttributeOperations(&table)
  addFileOperations(&table)
  addDirectoryOperations(&table)
  // Without these callbacks libfuse does not ask for remote locks, and the kernel keeps them to itself.
  if !settings.localLocks { addLockOperations(&table) }
  return table
}

/// What we ask of the kernel through libfuse; ``Handshake`` adds what libfuse forgets.
private func wishes(_ connection: inout fuse_conn_info) {
  connection.want |= connection.capable & UInt32(FUSE_CAP_IOCTL_DIR)
  connection.want |= connection.capable & UInt32(FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO)
  // Splicing is no faster than copying here, and the session's own I/O has no pipes. Linux 6.18 drops the
  // pages of a file before it writes to it with O_DIRECT, and after that once more unless the write is
  // asynchronous: what others have read or mapped meanwhile would stay there. So none is.
  connection.want &= ~UInt32(FUSE_CAP_ASYNC_DIO)
  connection.want &= ~UInt32(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE)
  // Releases, reads ahead and late writes under way at once, of all files together. Some may wait for a
  // program that somebody has stopped, so this is as many as the kernel has a number for: `RequestQueue`
  // bounds what one user has of reads, and the kernel what is written late. Where the threshold is reached,
  // the kernel begins no late write of anybody's.
  connection.max_background = 65_535
  connection.congestion_threshold = 49_151
  connection.time_gran = 1
}

/// The session that a request came through.
@inline(__always)
func session(of request: fuse_req_t?) -> Session {
  // Session.init put itself there, and outlives every request that it reads.
  guard let request, let data = fuse_req_userdata(request) else {
    preconditionFailure("libfuse calls back with a request that has the session as its user data")
  }
  return Unmanaged<Session>.fromOpaque(data).takeUnretainedValue()
}

/// Asks for an answer and sends it, or the error instead: exactly one reply.
@inline(__always)
func serve<Answer>(
  _ request: fuse_req_t?, _ ask: (any FileSystem, Caller) throws(Errno) -> Answer,
  _ send: (fuse_req_t, Session, Answer) -> Void
) {
  guard let request, let context = fuse_req_ctx(request) else { return }
  let session = session(of: request)
  let caller = Caller(
    uid: context.pointee.uid, gid: context.pointee.gid, pid: context.pointee.pid,
    request: RequestID(Wire.longWord(at: 8, of: Session.currentMessage)))
  do throws(Errno) {
    send(request, session, try ask(session.fileSystem, caller))
  } catch {
    if let error = session.failed(Session.currentMessage, error) {
      fuse_reply_err(request, error.code)
    } else {
      session.letGo(of: request)
    }
  }
}

/// For operations whose answer is that they are done.
@inline(__always)
func serve(_ request: fuse_req_t?, _ ask: (any FileSystem, Caller) throws(Errno) -> Void) {
  serve(request, ask) { (request, _, _: Void) in _ = fuse_reply_err(request, 0) }
}

/// Sends an entry; if nobody is there to take it, its lookup is released.
func reply(_ request: fuse_req_t, _ session: Session, _ entry: Entry) {
  let result = Wire.withBytes(of: entry) { reply(request, $0) }
  if result == -ENOENT, let node = entry.node { session.fileSystem.forget(node, count: 1) }
}

/// Sends attributes.
func reply(_ request: fuse_req_t, _ attributes: Attributes) {
  Wire.withBytes(of: attributes) { _ = reply(request, $0) }
}

/// Sends bytes.
@discardableResult
func reply(_ request: fuse_req_t, _ bytes: UnsafeRawBufferPointer) -> Int32 {
  fuse_reply_buf(request, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count)
}

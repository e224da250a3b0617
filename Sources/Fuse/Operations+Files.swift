// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CFuse
internal import Glibc
internal import LinuxIO

// Callbacks that deal with open files.

func addFileOperations(_ table: inout fuse_lowlevel_ops) {
  table.open = { request, node, info in
    serve(request) { (files, caller) throws(Errno) in
      guard let info else { throw .EINVAL }
      // FUSE_OPEN_KILL_SUIDGID, which libfuse hides: this open truncates, without privilege.
      let killSetID = Wire.word(at: 44, of: Session.currentMessage) & 1 != 0
      guard let request else { throw .EINVAL }
      return try files.open(
        NodeID(node), flags: info.pointee.flags, clearsSetID: killSetID, by: caller,
        later: LateOpen(NodeID(node), request, session(of: request)))
    } _: { request, session, opened in
      if let opened { send(opened, of: NodeID(node), request, session) }
    }
  }
  table.create = { request, parent, name, mode, info in
    serve(request) { (files, caller) throws(Errno) in
      guard let info else { throw .EINVAL }
      return try files.create(
        try checked(name), in: NodeID(parent), flags: info.pointee.flags, mode: mode, by: caller)
    } _: { request, session, created in
      reply(request, session, created)
    }
  }
  table.release = { request, node, info in
    guard let info else { return }
    let flockOwner = info.pointee.flock_release != 0 ? LockOwner(info.pointee.lock_owner) : nil
    session(of: request).fileSystem.release(
      NodeID(node), handle: HandleID(info.pointee.fh), flockOwner: flockOwner)
    fuse_reply_err(request, 0)
  }
  table.flush = { request, node, info in
    serve(request) { (files, _) throws(Errno) in
      guard let info else { throw .EINVAL }
      try files.flush(
        NodeID(node), handle: HandleID(info.pointee.fh), owner: LockOwner(info.pointee.lock_owner))
    }
  }
  table.fsync = { request, node, dataOnly, info in
    serve(request) { (files, caller) throws(Errno) in
      guard let info else { throw .EINVAL }
      let handle = HandleID(info.pointee.fh)
      guard files.mayHaveChanged(NodeID(node), handle: handle, caller) else { return }
      try files.synchronize(NodeID(node), handle: handle, dataOnly: dataOnly != 0)
    }
  }
  addDataOperations(&table)
}

/// Sends what was opened; if nobody is there to take it, it is closed.
func send(_ opened: Opened, of node: NodeID, _ request: fuse_req_t, _ session: Session) {
  if !reply(request, opened) {
    session.fileSystem.release(node, handle: opened.handle, flockOwner: nil)
  }
}

private func addDataOperations(_ table: inout fuse_lowlevel_ops) {
  table.read = { request, node, size, offset, info in
    guard let info, size >= 0, size <= Session.bufferSize else {
      fuse_reply_err(request, EINVAL)
      return
    }
    // Far too large for a stack; the allocator keeps a mapping of this size for the next read.
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: max(size, 1), alignment: 4096)
    // See `RequestQueue`. The answer has been sent then, and `request` is no more.
    let isWiped = session(of: request).fileSystem.hasQueues
    defer {
      if isWiped { buffer.wipe() }
      buffer.deallocate()
    }
    serve(request) { (files, _) throws(Errno) in
      try files.read(
        NodeID(node), handle: HandleID(info.pointee.fh), at: Int64(offset),
        into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<size]))
    } _: { request, _, count in
      reply(request, UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<count]))
    }
  }
  table.write = { request, node, bytes, size, offset, info in
    serve(request) { (files, caller) throws(Errno) in
      guard let info, let bytes, Session.isInCurrentMessage(bytes, count: size) else { throw .EINVAL }
      // FUSE_WRITE_CACHE and FUSE_WRITE_KILL_SUIDGID, which libfuse hides.
      let kernelFlags = Wire.word(at: 60, of: Session.currentMessage)
      var flags: WriteFlags = []
      if kernelFlags & 1 << 2 != 0 { flags.insert(.clearsSetID) }
      // Pages have their place, whatever the open file through which they happen to be written says.
      if kernelFlags & 1 << 0 != 0 {
        flags.insert(.fromCache)
      } else if info.pointee.flags & O_APPEND != 0 {
        flags.insert(.atEnd)
      }
      return try files.write(
        NodeID(node), handle: HandleID(info.pointee.fh), at: Int64(offset),
        from: UnsafeRawBufferPointer(start: bytes, count: size), flags, by: caller)
    } _: { request, _, count in
      _ = fuse_reply_write(request, count)
    }
  }
  table.fallocate = { request, node, mode, offset, length, info in
    serve(request) { (files, caller) throws(Errno) in
      guard let info else { throw .EINVAL }
      try files.allocate(
        NodeID(node), handle: HandleID(info.pointee.fh), mode: mode, offset: Int64(offset),
        length: Int64(length), by: caller)
    }
  }
  table.lseek = { request, node, offset, whence, info in
    serve(request) { (files, _) throws(Errno) in
      guard let info else { throw .EINVAL }
      return try files.seek(
        NodeID(node), handle: HandleID(info.pointee.fh), offset: Int64(offset), whence: whence)
    } _: { request, _, position in
      _ = fuse_reply_lseek(request, off_t(position))
    }
  }
  table.copy_file_range = { request, node, offset, info, target, targetOffset, targetInfo, length, flags in
    serve(request) { (files, caller) throws(Errno) in
      guard let info, let targetInfo else { throw .EINVAL }
      // This reply has 32 bits for the count; a larger copy goes on where this one ends.
      return try files.copyRange(
        from: NodeID(node), HandleID(info.pointee.fh), at: Int64(offset),
        to: NodeID(target), HandleID(targetInfo.pointee.fh), at: Int64(targetOffset),
        length: min(length, 1 << 30), flags: UInt32(bitPattern: flags), by: caller)
    } _: { request, _, count in
      _ = fuse_reply_write(request, count)
    }
  }
}

/// Sends what was opened; false if nobody is there to take it, and so nobody will release it.
///
/// By hand, because libfuse 3.14 has no room in its structure for a backing id.
private func reply(_ request: fuse_req_t, _ opened: Opened) -> Bool {
  var out = InlineArray<16, UInt8>(repeating: 0)
  let result = withUnsafeMutableBytes(of: &out) { bytes in
    guard let base = bytes.baseAddress else { return -EIO }
    Wire.write(opened, to: base)
    return fuse_reply_buf(request, base.assumingMemoryBound(to: CChar.self), Wire.openSize)
  }
  return result != -ENOENT
}

private func reply(_ request: fuse_req_t, _ session: Session, _ created: (entry: Entry, opened: Opened)) {
  var out = InlineArray<144, UInt8>(repeating: 0)
  let result = withUnsafeMutableBytes(of: &out) { bytes in
    guard let base = bytes.baseAddress else { return -EIO }
    Wire.write(created.entry, to: base)
    Wire.write(created.opened, to: base + Wire.entrySize)
    return fuse_reply_buf(request, base.assumingMemoryBound(to: CChar.self), Wire.entrySize + Wire.openSize)
  }
  if result == -ENOENT, let node = created.entry.node {
    session.fileSystem.release(node, handle: created.opened.handle, flockOwner: nil)
    session.fileSystem.forget(node, count: 1)
  }
}

func addDirectoryOperations(_ table: inout fuse_lowlevel_ops) {
  table.opendir = { request, node, info in
    serve(request) { (files, caller) throws(Errno) in
      try files.openDirectory(NodeID(node), by: caller)
    } _: { request, session, opened in
      if !reply(request, opened) {
        session.fileSystem.releaseDirectory(NodeID(node), handle: opened.handle)
      }
    }
  }
  table.readdir = { request, node, size, offset, info in
    list(request, node, size, offset, info, withAttributes: false)
  }
  table.readdirplus = { request, node, size, offset, info in
    list(request, node, size, offset, info, withAttributes: true)
  }
  table.releasedir = { request, node, info in
    guard let info else { return }
    session(of: request).fileSystem.releaseDirectory(NodeID(node), handle: HandleID(info.pointee.fh))
    fuse_reply_err(request, 0)
  }
  table.fsyncdir = { request, node, dataOnly, info in
    serve(request) { (files, caller) throws(Errno) in
      guard let info else { throw .EINVAL }
      guard files.mayHaveChanged(NodeID(node), handle: nil, caller) else { return }
      try files.synchronizeDirectory(
        NodeID(node), handle: HandleID(info.pointee.fh), dataOnly: dataOnly != 0)
    }
  }
}

private func list(
  _ request: fuse_req_t?, _ node: fuse_ino_t, _ size: Int, _ offset: off_t,
  _ info: UnsafeMutablePointer<fuse_file_info>?, withAttributes: Bool
) {
  guard let info, size >= 0, size <= Session.bufferSize else {
    fuse_reply_err(request, EINVAL)
    return
  }
  // The kernel asks for what programs have room for, hundreds of entries; a page takes a tenth of the time.
  let user = fuse_req_ctx(request)?.pointee.uid
  let isPressing = user.map { session(of: request).recentUsers.isPressing($0) } == true
  let size = isPressing ? min(size, 4096) : size
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: max(size, 1), alignment: 16)
  defer { buffer.deallocate() }
  var writer = DirectoryWriter(
    UnsafeMutableRawBufferPointer(rebasing: buffer[..<size]), withAttributes: withAttributes)
  serve(request) { (files, caller) throws(Errno) in
    do throws(Errno) {
      try files.readDirectory(
        NodeID(node), handle: HandleID(info.pointee.fh), after: Int64(offset), into: &writer, by: caller)
    } catch {
      // The lookups of the entries before the error count, so the kernel must get those: it would never
      // forget the nodes otherwise. Its next page meets the error.
      guard writer.count > 0 else { throw error }
    }
  } _: { (request, session, _: Void) in
    let bytes = writer.bytes
    let sent = fuse_reply_buf(request, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count)
    guard sent == -ENOENT else { return }
    for node in writer.lookups { session.fileSystem.forget(node, count: 1) }
  }
}

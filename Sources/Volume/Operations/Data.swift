// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import Fuse
internal import Glibc
package import LinuxIO
internal import Policy

// The contents of open files, as far as they come to the daemon: with passthrough the kernel reads and writes
// the backing file itself, and only what is not a read or a write arrives here.

extension View {
  package func read(
    _ node: NodeID, handle: HandleID, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer
  ) throws(Errno) -> Int {
    try withFile(files.find(handle), .read, by: nil) { (file) throws(Errno) in
      // The kernel takes a short read for the end of the file.
      var count = 0
      while count < buffer.count {
        let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
        let read = try file.read(into: rest, at: offset + Int64(count))
        if read == 0 { break }
        count += read
      }
      return count
    }
  }

  package func write(
    _ node: NodeID, handle: HandleID, at offset: Int64, from bytes: UnsafeRawBufferPointer,
    _ flags: WriteFlags, by caller: Caller
  ) throws(Errno) -> Int {
    let file = try files.find(handle)
    let fromCache = flags.contains(.fromCache)
    // Whole pages, which may be older than what another view has stored.
    if fromCache, let object = nodes.number(of: node), !volume.maps.mayWriteBack(object, by: number) {
      throw .EIO
    }
    if fromCache, let written = try granted.writeBeforeEnd(file, at: offset, bytes) { return written }
    if flags.contains(.clearsSetID) {
      if file.isRevocable { try gate.authorizeUse(of: node, .write) }
      let object = try nodes.reference(to: node)
      // As Linux does it, by what it remembers. Who serves a volume is not asked at each write.
      if try object.fd.statusInMemory().st_mode & (S_ISUID | S_ISGID) != 0 {
        try clearSetID(object.fd, by: caller)
      }
    }
    let isAtEnd = flags.contains(.atEnd)
    // What the kernel had kept it writes in nobody's name: that is then by the limits of whoever opened the
    // file.
    return try withFile(file, isAtEnd ? .append : .write, by: fromCache ? file.caller : caller) {
      (fd) throws(Errno) in
      isAtEnd ? try append(bytes, to: fd, for: caller.request) : try fd.write(bytes, at: offset)
    }
  }

  /// Appends what another worker has not appended for this very request.
  private func append(
    _ bytes: UnsafeRawBufferPointer, to file: FD, for request: RequestID
  ) throws(Errno) -> Int {
    guard volume.intents.isOn else { return try file.append(bytes) }
    // So that what comes to the end that is noted is this request's.
    let number = ObjectNumber(try file.status())
    return try volume.appends(to: number).exclusively(in: number) { () throws(Errno) in
      var done = 0
      if let left = left(by: request) {
        if left.isDone != 0 { return min(max(0, Int(clamping: left.result)), bytes.count) }
        done = try file.lengthAppended(of: bytes, since: left.before)
      }
      guard done < bytes.count else { return done }
      let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
      return try once(request, size: Int64(try file.status().st_size) - Int64(done)) { () throws(Errno) in
        done + (try file.append(rest))
      }
    }
  }

  package func mayHaveChanged(_ node: NodeID, handle: HandleID?, _ caller: Caller) -> Bool {
    if caller.uid == 0 { return true }
    if let handle, let file = try? files.find(handle), file.access.writes { return true }
    // What a program serves may have it wait, and this is asked by those who serve everybody.
    guard let object = try? nodes.reference(to: node), !object.isOnVolume,
      let status = try? judgedStatus(of: object),
      let judged = try? self.object(status, object), judged.uid != caller.uid
    else { return true }
    let changes: [Rights] =
      judged.isDirectory ? [.addFile, .addSubdirectory, .deleteChild] : [.write, .append]
    return changes.contains { gate.denial(of: $0, on: judged, to: caller) == nil }
  }

  package func synchronize(_ node: NodeID, handle: HandleID, dataOnly: Bool) throws(Errno) {
    let file = try files.find(handle)
    try withFile(file, .read, by: nil) { (fd) throws(Errno) in
      // A program that serves a volume may know of each open alone what was written through it.
      try file.appending?.use { (fd) throws(Errno) in try fd.synchronize(dataOnly: dataOnly) }
      try fd.synchronize(dataOnly: dataOnly)
    }
  }

  package func allocate(
    _ node: NodeID, handle: HandleID, mode: Int32, offset: Int64, length: Int64, by caller: Caller
  ) throws(Errno) {
    // What moves all that is behind it, and so can't be done twice, the kernel never asks for.
    if mode & (CLX_FALLOC_COLLAPSE_RANGE | CLX_FALLOC_INSERT_RANGE) != 0 { throw .EOPNOTSUPP }
    // Where one may only append, only room may be reserved. Corresponds to `fallocate(2)`.
    let file = try files.find(handle)
    if mode & ~CLX_FALLOC_KEEP_SIZE != 0 { try gate.authorizeOverwriting(file.access) }
    try withFile(file, .write, by: caller) { (fd) throws(Errno) in
      try fd.allocate(mode: mode, offset: offset, length: length)
    }
  }

  package func seek(_ node: NodeID, handle: HandleID, offset: Int64, whence: Int32) throws(Errno) -> Int64 {
    try withFile(files.find(handle), .read, by: nil) { (file) throws(Errno) in try file.seek(offset, whence) }
  }

  package func copyRange(
    from node: NodeID, _ handle: HandleID, at offset: Int64,
    to target: NodeID, _ targetHandle: HandleID, at targetOffset: Int64, length: Int, flags: UInt32,
    by caller: Caller
  ) throws(Errno) -> Int {
    // Cut short, so that others take their turns in between: whoever copies goes on where a copy ends, as
    // copy_file_range(2) says.
    let length = min(length, 16 << 20)
    // Corresponds to `copy_file_range(2)`, which refuses a target that is open for appending.
    let file = try files.find(targetHandle)
    if file.access.contains(.append) { throw .EBADF }
    return try withFile(files.find(handle), .read, by: nil) { (source) throws(Errno) in
      try withFile(file, .write, by: caller) { (sink) throws(Errno) in
        try source.copyRange(at: offset, to: sink, at: targetOffset, length: length, flags: flags)
      }
    }
  }

  /// Lends the file's descriptor, or with passthrough one that is opened for this request.
  ///
  /// What needs room on the disk has it as `caller`; nil stands for what needs none.
  private func withFile<Result>(
    _ file: OpenFile, _ access: OpenFile.Access, by caller: Caller?, _ body: (FD) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    if file.isRevocable {
      return try granted.whileGranted(file.node, access) { () throws(Errno) in
        try lend(file, access, by: caller, body)
      }
    }
    return try lend(file, access, by: caller, body)
  }

  private func lend<Result>(
    _ file: OpenFile, _ access: OpenFile.Access, by caller: Caller?, _ body: (FD) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    guard let caller else { return try lend(file, access, body) }
    return try asCaller(caller) { () throws(Errno) in try lend(file, access, body) }
  }

  private func lend<Result>(
    _ file: OpenFile, _ access: OpenFile.Access, _ body: (FD) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    if access == .append, let appending = file.appending { return try appending.use(body) }
    if let descriptor = file.descriptor { return try descriptor.use(body) }
    // That the handle has the access was asked at open; here only root's daemon opens, whose right it does
    // not need.
    if access.writes, !file.access.contains(.write) { throw .EBADF }
    let object = try nodes.reference(to: file.node)
    let flags = (access.writes ? O_WRONLY : O_RDONLY) | O_NONBLOCK
    let opened = try nodes.openWithRoom { () throws(Errno) in try object.fd.reopened(flags) }
    return try body(opened.fd)
  }
}

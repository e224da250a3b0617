// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO

extension FakeFiles {
  func open(_ node: NodeID, flags: Int32, clearsSetID: Bool, by caller: Caller) throws(Errno) -> Opened {
    try ask("open", node, clearsSetID ? "kill" : "", Int64(flags))
    return Self.opened
  }
  func create(
    _ name: Name, in parent: NodeID, flags: Int32, mode: mode_t, by caller: Caller
  ) throws(Errno) -> (Entry, Opened) {
    try ask("create", parent, name.text, Int64(mode))
    return (Self.entry, Self.opened)
  }
  func createUnnamed(
    in parent: NodeID, flags: Int32, mode: mode_t, by caller: Caller
  ) throws(Errno) -> (Entry, Opened) {
    try ask("createUnnamed", parent, "\(flags)", Int64(mode))
    return (Self.entry, Self.opened)
  }
  func read(
    _ node: NodeID, handle: HandleID, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer
  ) throws(Errno) -> Int {
    try ask("read", node, "\(buffer.count)", offset)
    let count = min(buffer.count, 16)
    for index in 0..<count { buffer[index] = UInt8(index) }
    return count
  }
  func write(
    _ node: NodeID, handle: HandleID, at offset: Int64, from bytes: UnsafeRawBufferPointer,
    _ flags: WriteFlags, by caller: Caller
  ) throws(Errno) -> Int {
    // Reads what it is given, as a filesystem does.
    var words = String(decoding: bytes, as: UTF8.self)
    if flags.contains(.clearsSetID) { words += " kill" }
    if flags.contains(.fromCache) { words += " cache" }
    if flags.contains(.atEnd) { words += " end" }
    try ask("write", node, words, offset)
    return bytes.count
  }
  func flush(_ node: NodeID, handle: HandleID, owner: LockOwner) throws(Errno) {
    try ask("flush", node, "", Int64(bitPattern: owner.raw))
  }
  func release(_ node: NodeID, handle: HandleID, flockOwner: LockOwner?) {
    note("release", node, flockOwner.map { "owner \($0.raw)" } ?? "", Int64(bitPattern: handle.raw))
  }
  func synchronize(_ node: NodeID, handle: HandleID, dataOnly: Bool) throws(Errno) {
    try ask("synchronize", node, "", dataOnly ? 1 : 0)
  }
  func allocate(
    _ node: NodeID, handle: HandleID, mode: Int32, offset: Int64, length: Int64, by caller: Caller
  ) throws(Errno) { try ask("allocate", node, "\(offset) \(length)", Int64(mode)) }
  func seek(_ node: NodeID, handle: HandleID, offset: Int64, whence: Int32) throws(Errno) -> Int64 {
    try ask("seek", node, "\(whence)", offset)
    return offset
  }
  func copyRange(
    from node: NodeID, _ handle: HandleID, at offset: Int64,
    to target: NodeID, _ targetHandle: HandleID, at targetOffset: Int64, length: Int, flags: UInt32,
    by caller: Caller
  ) throws(Errno) -> Int {
    try ask("copyRange", node, "\(offset) -> \(target.raw) \(targetOffset)", Int64(length))
    return length
  }

  func openDirectory(_ node: NodeID, by caller: Caller) throws(Errno) -> Opened {
    try ask("openDirectory", node)
    return Opened(handle: HandleID(3), mode: [.cacheListing])
  }
  func readDirectory(
    _ node: NodeID, handle: HandleID, after offset: Int64, into writer: inout DirectoryWriter,
    by caller: Caller
  ) throws(Errno) {
    try ask("readDirectory", node, "", offset)
    for (index, text) in listed.enumerated() {
      try text.withName { (name) throws(Errno) in
        guard writer.hasRoom(for: name) else { return }
        let entry = writer.withAttributes ? Self.entry : nil
        writer.add(name, inode: 7, type: 8, next: Int64(index + 1), entry: entry)
      }
    }
  }
  func releaseDirectory(_ node: NodeID, handle: HandleID) {
    note("releaseDirectory", node, "", Int64(bitPattern: handle.raw))
  }
  func synchronizeDirectory(_ node: NodeID, handle: HandleID, dataOnly: Bool) throws(Errno) {
    try ask("synchronizeDirectory", node)
  }
  func statistics(of node: NodeID) throws(Errno) -> statvfs {
    try ask("statistics", node)
    return statvfs()
  }

  func attribute(
    _ name: Name, of node: NodeID, into buffer: UnsafeMutableRawBufferPointer, by caller: Caller
  ) throws(Errno) -> Int {
    try ask("attribute", node, name.text, Int64(buffer.count))
    guard buffer.count > 0 else { return 5 }
    guard buffer.count >= 5 else { throw .ERANGE }
    buffer.copyBytes(from: Array("value".utf8))
    return 5
  }
  func attributeNames(
    of node: NodeID, into buffer: UnsafeMutableRawBufferPointer, by caller: Caller
  ) throws(Errno) -> Int {
    try ask("attributeNames", node, "", Int64(buffer.count))
    return 0
  }
  func setAttribute(
    _ name: Name, of node: NodeID, to value: UnsafeRawBufferPointer, flags: Int32, by caller: Caller
  ) throws(Errno) {
    try ask("setAttribute", node, name.text + "=" + String(decoding: value, as: UTF8.self), Int64(flags))
  }
  func removeAttribute(_ name: Name, of node: NodeID, by caller: Caller) throws(Errno) {
    try ask("removeAttribute", node, name.text)
  }

  func conflictingLock(
    _ node: NodeID, handle: HandleID, owner: LockOwner, wanted: LockRange
  ) throws(Errno) -> LockRange {
    try ask("conflictingLock", node, "\(wanted.first) \(wanted.last)")
    return LockRange(kind: .write, first: 10, last: 19, pid: 5)
  }
  func setLock(
    _ node: NodeID, handle: HandleID, owner: LockOwner, to range: LockRange, parking: ParkingPlace?,
    by caller: Caller
  ) throws(Errno) -> LockOutcome {
    try ask("setLock", node, "\(range.kind) \(range.first) \(range.last)", parking == nil ? 0 : 1)
    return park(parking)
  }
  func setFlock(
    _ node: NodeID, handle: HandleID, owner: LockOwner, to kind: LockRange.Kind, parking: ParkingPlace?,
    by caller: Caller
  ) throws(Errno) -> LockOutcome {
    try ask("setFlock", node, "\(kind)", parking == nil ? 0 : 1)
    return park(parking)
  }
  func abandoned(_ reply: ParkedReply) { note("abandoned") }
  func inodeFlags(of node: NodeID, by caller: Caller) throws(Errno) -> UInt32 {
    try ask("inodeFlags", node)
    return 0x80
  }
  func setInodeFlags(of node: NodeID, to flags: UInt32, by caller: Caller) throws(Errno) {
    try ask("setInodeFlags", node, "", Int64(flags))
  }
}

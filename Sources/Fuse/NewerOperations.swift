// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CFuse
internal import CLinux
internal import Glibc
internal import LinuxIO

// Operations younger than libfuse 3.14, which would answer ENOSYS: decoded from the kernel's message and
// answered by hand. With a libfuse that knows them (3.18), they become entries of the table in
// Operations.swift.

extension Session {
  /// Serves the request if it is one of these; false leaves it to libfuse.
  func processNewer(_ header: Wire.Header, _ message: UnsafeRawBufferPointer) -> Bool {
    do throws(Errno) {
      switch header.opcode {
      case Wire.Opcode.tmpfile: try serveUnnamed(header, message)
      case Wire.Opcode.statx: try serveStatx(header, message)
      case Wire.Opcode.copyRange64: try serveCopyRange(header, message)
      default: return false
      }
    } catch {
      if let error = failed(message, error) { answer(header.unique, error) }
    }
    return true
  }

  /// struct fuse_create_in {flags, mode, umask, open_flags} and a name that means nothing.
  private func serveUnnamed(_ header: Wire.Header, _ message: UnsafeRawBufferPointer) throws(Errno) {
    let flags = Int32(bitPattern: Wire.word(at: 40, of: message))
    let mode = FileMode(Wire.word(at: 44, of: message))
    let (entry, opened) = try fileSystem.createUnnamed(
      in: header.node, flags: flags, mode: mode, by: header.caller)
    var out = InlineArray<144, UInt8>(repeating: 0)
    let sent = withUnsafeMutableBytes(of: &out) { bytes in
      guard let base = bytes.baseAddress else { return false }
      Wire.write(entry, to: base)
      Wire.write(opened, to: base + Wire.entrySize)
      return answer(header.unique, UnsafeRawBufferPointer(bytes))
    }
    if !sent, let node = entry.node {
      fileSystem.release(node, handle: opened.handle, flockOwner: nil)
      fileSystem.forget(node, count: 1)
    }
  }

  /// Request: {getattr_flags u32, reserved u32, fh u64, sx_flags u32, sx_mask u32}, where a flag of 1 says
  /// that there is a fh.
  ///
  /// Reply: {attr_valid u64, nsec u32, flags u32, 16 spare bytes, struct statx}.
  private func serveStatx(_ header: Wire.Header, _ message: UnsafeRawBufferPointer) throws(Errno) {
    var out = InlineArray<288, UInt8>(repeating: 0)
    try withUnsafeMutableBytes(of: &out) { (bytes) throws(Errno) in
      guard let base = bytes.baseAddress else { throw .EIO }
      let hasHandle = Wire.word(at: 40, of: message) & 1 != 0
      let validity = Wire.split(
        try fileSystem.extendedStatus(
          of: header.node, handle: hasHandle ? HandleID(Wire.longWord(at: 48, of: message)) : nil,
          into: base + 32, by: header.caller))
      base.storeBytes(of: validity.seconds, as: UInt64.self)
      base.storeBytes(of: validity.nanoseconds, toByteOffset: 8, as: UInt32.self)
      answer(header.unique, UnsafeRawBufferPointer(bytes))
    }
  }

  /// struct fuse_copy_file_range_in {fh, off, target node, target fh, target off, length, flags}, all u64.
  private func serveCopyRange(_ header: Wire.Header, _ message: UnsafeRawBufferPointer) throws(Errno) {
    func word(_ index: Int) -> UInt64 { Wire.longWord(at: Wire.headerSize + 8 * index, of: message) }
    let count = try fileSystem.copyRange(
      from: header.node, HandleID(word(0)), at: Int64(bitPattern: word(1)),
      to: NodeID(word(2)), HandleID(word(3)), at: Int64(bitPattern: word(4)),
      length: Int(clamping: word(5)), flags: UInt32(truncatingIfNeeded: word(6)),
      by: header.caller)
    var copied = UInt64(count)
    withUnsafeBytes(of: &copied) { _ = answer(header.unique, $0) }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

// The operations that come most often, decoded from the kernel's message and answered without libfuse, which
// allocates a request for each and enters it in a list so that it can be interrupted. None of these waits,
// so there is nothing to interrupt.

extension Session {
  /// Serves the request if it is one of these; false leaves it to libfuse.
  func processFrequent(_ header: Wire.Header, _ message: UnsafeRawBufferPointer) -> Bool {
    do throws(Errno) {
      switch header.opcode {
      case Wire.Opcode.lookup: try lookup(header, message)
      case Wire.Opcode.attributes: try attributes(header, message)
      case Wire.Opcode.makeDirectory: try makeDirectory(header, message)
      case Wire.Opcode.removeName: try remove(header, message, directory: false)
      case Wire.Opcode.removeDirectory: try remove(header, message, directory: true)
      // struct fuse_rename_in {newdir u64}, and fuse_rename2_in {newdir u64, flags u32, padding u32}.
      case Wire.Opcode.rename: try rename(header, message, flags: 0, namesAt: 48)
      case Wire.Opcode.renameWithFlags:
        try rename(header, message, flags: Wire.word(at: 48, of: message), namesAt: 56)
      case Wire.Opcode.forget:
        fileSystem.forget(header.node, count: Wire.longWord(at: Wire.headerSize, of: message))
      case Wire.Opcode.forgetSeveral: forgetSeveral(message)
      default: return false
      }
    } catch {
      if let error = failed(message, error) { answer(header.unique, error) }
    }
    return true
  }

  private func lookup(_ header: Wire.Header, _ message: UnsafeRawBufferPointer) throws(Errno) {
    let name = try Wire.name(at: Wire.headerSize, of: message)
    answer(header.unique, try fileSystem.lookup(name, in: header.node, by: header.caller))
  }

  /// struct fuse_getattr_in {getattr_flags u32, dummy u32, fh u64}.
  ///
  /// A flag of 1 says that there is a fh.
  private func attributes(_ header: Wire.Header, _ message: UnsafeRawBufferPointer) throws(Errno) {
    let hasHandle = Wire.word(at: Wire.headerSize, of: message) & 1 != 0
    let handle = hasHandle ? HandleID(Wire.longWord(at: 48, of: message)) : nil
    answer(header.unique, try fileSystem.attributes(of: header.node, handle: handle, by: header.caller))
  }

  /// struct fuse_mkdir_in {mode u32, umask u32}, where the kernel has applied the umask, and the name.
  private func makeDirectory(_ header: Wire.Header, _ message: UnsafeRawBufferPointer) throws(Errno) {
    let mode = FileMode(Wire.word(at: Wire.headerSize, of: message))
    let name = try Wire.name(at: 48, of: message)
    answer(
      header.unique, try fileSystem.makeDirectory(name, in: header.node, mode: mode, by: header.caller))
  }

  private func remove(_ header: Wire.Header, _ message: UnsafeRawBufferPointer, directory: Bool) throws(Errno)
  {
    let name = try Wire.name(at: Wire.headerSize, of: message)
    try fileSystem.remove(name, in: header.node, directory: directory, by: header.caller)
    answerDone(header.unique)
  }

  private func rename(
    _ header: Wire.Header, _ message: UnsafeRawBufferPointer, flags: UInt32, namesAt offset: Int
  ) throws(Errno) {
    let name = try Wire.name(at: offset, of: message)
    let newName = try Wire.name(at: offset + name.length + 1, of: message)
    let newParent = NodeID(Wire.longWord(at: Wire.headerSize, of: message))
    try fileSystem.rename(
      name, in: header.node, to: newName, in: newParent, flags: flags, by: header.caller)
    answerDone(header.unique)
  }

  /// struct fuse_batch_forget_in {count u32, dummy u32}, and for each {nodeid u64, nlookup u64}.
  private func forgetSeveral(_ message: UnsafeRawBufferPointer) {
    let first = Wire.headerSize + 8
    let count = min(Int(Wire.word(at: Wire.headerSize, of: message)), max(message.count - first, 0) / 16)
    for index in 0..<count {
      let node = NodeID(Wire.longWord(at: first + index * 16, of: message))
      fileSystem.forget(node, count: Wire.longWord(at: first + index * 16 + 8, of: message))
    }
  }
}

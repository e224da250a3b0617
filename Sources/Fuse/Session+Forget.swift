// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

// What the kernel has forgotten. Nobody waits for an answer, so this goes past libfuse, which would allocate
// a request for each; half of the messages of a removal are these.

extension Session {
  /// Takes back the lookups that a message names; false if it is about something else.
  @inline(__always)
  func processForget(_ header: Wire.Header, _ message: UnsafeRawBufferPointer) -> Bool {
    switch header.opcode {
    case Wire.Opcode.forget:
      fileSystem.forget(header.node, count: Wire.longWord(at: Wire.headerSize, of: message))
    case Wire.Opcode.forgetSeveral:
      forgetSeveral(message)
    default:
      return false
    }
    return true
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

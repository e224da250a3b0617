// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

// Messages to the kernel: struct fuse_out_header {len u32, error i32, unique u64} and a body.

extension Session {
  /// Sends an entry; if nobody is there to take it, its lookup is released.
  func answer(_ unique: UInt64, _ entry: Entry) {
    let sent = Wire.withBytes(of: entry) { answer(unique, $0) }
    if !sent, let node = entry.node { fileSystem.forget(node, count: 1) }
  }

  func answer(_ unique: UInt64, _ attributes: Attributes) {
    Wire.withBytes(of: attributes) { _ = answer(unique, $0) }
  }

  /// False if nobody is there to take it.
  @discardableResult
  func answer(_ unique: UInt64, _ body: UnsafeRawBufferPointer) -> Bool {
    write(unique: unique, code: 0, body)
  }

  func answer(_ unique: UInt64, _ error: Errno) {
    _ = write(unique: unique, code: -error.code, UnsafeRawBufferPointer(start: nil, count: 0))
  }

  func answerDone(_ unique: UInt64) {
    _ = write(unique: unique, code: 0, UnsafeRawBufferPointer(start: nil, count: 0))
  }

  func write(unique: UInt64, code: Int32, _ body: UnsafeRawBufferPointer) -> Bool {
    answering(unique) {
      var header = (UInt32(truncatingIfNeeded: 16 + body.count), code, unique)
      return withUnsafeMutableBytes(of: &header) { head in
        if body.isEmpty { return Glibc.write(fd.raw, head.baseAddress, 16) >= 0 }
        var pieces = InlineArray<2, iovec>(repeating: iovec(iov_base: head.baseAddress, iov_len: 16))
        pieces[1] = iovec(iov_base: UnsafeMutableRawPointer(mutating: body.baseAddress), iov_len: body.count)
        return withUnsafeBytes(of: &pieces) { write($0.assumingMemoryBound(to: iovec.self), to: fd.raw) >= 0 }
      }
    }
  }

  /// Sends the reply to a request by `body`: moments at which tests let a worker die.
  ///
  /// A request that was sent again is no suspect when its reply has been sent; before that, sending it may be
  /// what ends workers.
  @inline(__always)
  func answering<Result>(_ unique: UInt64, _ body: () -> Result) -> Result {
    defer {
      let request = RequestID(unique)
      if request.isResent, let served { served.requests.answered(request, of: served.view) }
    }
    #if DEBUG
      // A notification has no number.
      let isReply = unique != 0
      if isReply { Trap.at(.answering) }
      defer { if isReply { Trap.at(.answered) } }
    #endif
    return body()
  }

  /// The longest message that is written in one piece: the header and what most operations answer.
  private static let shortMessage = 256

  /// Writes a message; a short one in one piece, because the kernel pins the pages of each piece by itself.
  func write(_ pieces: UnsafeBufferPointer<iovec>, to fd: Int32) -> Int {
    let length = pieces.reduce(0) { $0 &+ $1.iov_len }
    guard pieces.count > 1, length <= Self.shortMessage else {
      return writev(fd, pieces.baseAddress, Int32(truncatingIfNeeded: pieces.count))
    }
    // See `RequestQueue`.
    let isWiped = fileSystem.hasQueues
    return withUnsafeTemporaryAllocation(byteCount: length, alignment: 8) { whole in
      defer { if isWiped { whole.wipe() } }
      var end = 0
      for piece in pieces {
        let bytes = UnsafeRawBufferPointer(start: piece.iov_base, count: piece.iov_len)
        let rest = UnsafeMutableRawBufferPointer(rebasing: whole[end...])
        if isWiped { rest.copyTracelessly(from: bytes) } else { rest.copyMemory(from: bytes) }
        end += piece.iov_len
      }
      return Glibc.write(fd, whole.baseAddress, length)
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import Fuse
internal import Glibc
internal import LinuxIO

/// A request as the kernel writes it (linux/fuse.h).
package struct Message: Sendable {
  package var bytes: [UInt8]

  package init(
    _ opcode: Opcode, unique: UInt64, node: UInt64 = 1, uid: UInt32 = 1000, gid: UInt32 = 1001,
    pid: UInt32 = 77,
    _ body: [UInt8] = []
  ) {
    bytes =
      words(UInt32(40 + body.count), opcode.rawValue) + long(unique) + long(node) + words(uid, gid, pid, 0)
      + body
  }

  /// What the kernel offers at the start.
  package static func initialize(
    unique: UInt64 = 1, minor: UInt32 = 42, flags: UInt32 = 0xffff_ffff, flags2: UInt32 = 0xffff_ffff
  ) -> Message {
    let spare = [UInt8](repeating: 0, count: 44)
    return Message(.initialize, unique: unique, node: 0, words(7, minor, 131_072, flags, flags2) + spare)
  }
}

/// Operations by the kernel's numbers.
package enum Opcode: UInt32, CaseIterable, Sendable {
  case lookup = 1, forget, getattr, setattr, readlink, symlink
  case mknod = 8, mkdir, unlink, rmdir, rename, link, open, read, write, statfs, release
  case fsync = 20, setxattr, getxattr, listxattr, removexattr, flush, initialize, opendir, readdir,
    releasedir, fsyncdir
  case getlk, setlk, setlkw, access, create, interrupt, bmap, destroy, ioctl, poll
  case notifyReply = 41, batchForget, fallocate, readdirplus, rename2, lseek, copyFileRange
  case setupMapping = 48, removeMapping, syncfs, tmpfile, statx, copyFileRange64

  /// Whether the kernel expects an answer.
  package var isAnswered: Bool {
    self != .forget && self != .batchForget && self != .interrupt && self != .notifyReply
  }
}

package func words(_ values: UInt32...) -> [UInt8] {
  values.flatMap { value in withUnsafeBytes(of: value) { Array($0) } }
}
package func long(_ values: UInt64...) -> [UInt8] {
  values.flatMap { value in withUnsafeBytes(of: value) { Array($0) } }
}
package func strings(_ values: String...) -> [UInt8] { values.flatMap { Array($0.utf8) + [0] } }

/// An answer as the kernel gets it.
package struct Reply: Sendable {
  package let bytes: [UInt8]
  package init(bytes: [UInt8]) { self.bytes = bytes }
  package var length: Int { Int(word(0)) }
  package var code: Int32 { Int32(bitPattern: word(4)) }
  package var unique: UInt64 { long(8) }
  package var body: [UInt8] { Array(bytes.dropFirst(16)) }

  /// A number at an offset, as 0 where there is none.
  package func word(_ offset: Int) -> UInt32 {
    bytes.withUnsafeBytes {
      offset + 4 <= $0.count ? $0.loadUnaligned(fromByteOffset: offset, as: UInt32.self) : 0
    }
  }
  package func long(_ offset: Int) -> UInt64 {
    bytes.withUnsafeBytes {
      offset + 8 <= $0.count ? $0.loadUnaligned(fromByteOffset: offset, as: UInt64.self) : 0
    }
  }
}

/// The kernel's end of a connection: a socket that keeps messages apart takes the place of /dev/fuse.
package final class KernelEnd: Sendable {
  private let socket: OwnedFD
  package let session: Session

  /// Not yet initialized.
  package init(_ files: any FileSystem, _ settings: ConnectionSettings = ConnectionSettings()) throws {
    // A reply to someone who has gone must not end the tests.
    signal(SIGPIPE, SIG_IGN)
    var ends: [Int32] = [-1, -1]
    try check(socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &ends))
    socket = OwnedFD(owning: ends[0])
    session = try Session(files, over: OwnedFD(owning: ends[1]), settings: settings)
  }

  // Whoever was told that it has started keeps it until it has ended.
  deinit { session.finish() }

  /// Sends what a pool is to find.
  package func send(_ message: Message) throws {
    let sent = try check(
      message.bytes.withUnsafeBytes { Glibc.send(socket.fd.raw, $0.baseAddress, $0.count, 0) })
    guard sent == message.bytes.count else { throw Errno.EIO }
  }

  /// Serves a message on this thread.
  package func process(_ message: Message) {
    // Like the pool's buffer: aligned, and with room behind the message.
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: message.bytes.count + 4096, alignment: 4096)
    defer { buffer.deallocate() }
    buffer.initializeMemory(as: UInt8.self, repeating: 0)
    buffer.copyBytes(from: message.bytes)
    session.process(UnsafeMutableRawBufferPointer(rebasing: buffer[..<message.bytes.count]))
  }

  /// The next answer; nil if there is none within the time.
  package func reply(milliseconds: Int32 = 0) throws -> Reply? {
    while let message = try next(milliseconds: milliseconds) {
      // Notices, which answer nothing, have no number.
      if message.unique != 0 { return message }
    }
    return nil
  }

  private func next(milliseconds: Int32) throws -> Reply? {
    guard try socket.fd.waitUntilReadable(milliseconds: milliseconds) else { return nil }
    var buffer = [UInt8](repeating: 0, count: 1 << 17)
    let count = try retrying { recv(socket.fd.raw, &buffer, buffer.count, Int32(MSG_DONTWAIT)) }
    return count == 0 ? nil : Reply(bytes: Array(buffer[..<count]))
  }

  /// All answers that are there.
  package func replies() throws -> [Reply] {
    var all: [Reply] = []
    while let reply = try reply() { all.append(reply) }
    return all
  }

  /// Serves a message and gives its one answer.
  package func ask(_ message: Message) throws -> Reply {
    process(message)
    let replies = try replies()
    guard replies.count == 1, let reply = replies.first else { throw WrongCount(count: replies.count) }
    return reply
  }

  /// Ends the connection, as an unmount does.
  package func end() { _ = shutdown(socket.fd.raw, Int32(SHUT_RDWR)) }

  package struct WrongCount: Error { let count: Int }
}

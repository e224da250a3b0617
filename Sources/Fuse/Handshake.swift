// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

/// The first exchange with the kernel, in which both say what they can.
///
/// libfuse 3.14 forgets two flags and does not know the second word of flags, so its reply is completed on
/// the way out. When a newer libfuse is required (3.17 brings `fuse_set_feature_flag`), this file goes.
struct Handshake {
  private enum Flag {
    static let parallelDirectoryOperations: UInt32 = 1 << 18
    static let killPrivilegesV2: UInt32 = 1 << 28
    static let extended: UInt32 = 1 << 30
  }
  private enum Flag2 {
    static let directMaps: UInt32 = 1 << 4
    static let passthrough: UInt32 = 1 << 5
    static let noExport: UInt32 = 1 << 6
  }
  private enum Reply {
    static let flags = 12
    static let flags2 = 32
    static let maxStackDepth = 36
  }

  /// What the daemon goes by.
  struct Agreement {
    let passthrough: Bool
    let sharesDirectMaps: Bool
  }

  private let settings: ConnectionSettings
  private var unique: UInt64 = 0
  private var offered: UInt32 = 0
  private var offered2: UInt32 = 0
  /// Whether the reply is still to be sent.
  private(set) var isPending = true
  /// The kernel has had its answer from another worker; this one only brings libfuse to where that was.
  private var isRepeated = false
  /// What the kernel sent, for the next worker.
  private(set) var message: [UInt8] = []

  init(_ settings: ConnectionSettings) { self.settings = settings }

  /// Remembers what the kernel offers.
  mutating func note(_ header: Wire.Header, _ message: UnsafeRawBufferPointer, isRepeated: Bool = false) {
    self.isRepeated = isRepeated
    self.message = Array(message)
    unique = header.unique
    offered = Wire.word(at: 52, of: message)
    offered2 = Wire.word(at: 56, of: message)
  }

  /// Sends what libfuse replies, completed; tells `agreed` what that says, before the kernel can send more.
  mutating func send(
    _ fd: Int32, _ vectors: UnsafeMutablePointer<iovec>, _ count: Int32, agreed: (Agreement) -> Void
  ) -> Int {
    guard count == 2, let header = vectors[0].iov_base, let body = vectors[1].iov_base,
      header.loadUnaligned(fromByteOffset: 8, as: UInt64.self) == unique,
      header.loadUnaligned(fromByteOffset: 4, as: Int32.self) == 0,
      vectors[1].iov_len >= Reply.maxStackDepth + 4
    else { return writev(fd, vectors, count) }
    isPending = false

    var flags = body.loadUnaligned(fromByteOffset: Reply.flags, as: UInt32.self)
    flags |= offered & (Flag.parallelDirectoryOperations | Flag.killPrivilegesV2)
    var flags2: UInt32 = 0
    if offered & Flag.extended != 0 {
      flags |= Flag.extended
      // FUSE_DIRECT_IO_ALLOW_MMAP only on request: direct I/O is used where shared maps must be impossible.
      flags2 = offered2 & (settings.sharesDirectMaps ? Flag2.noExport | Flag2.directMaps : Flag2.noExport)
      if settings.passthrough { flags2 |= offered2 & Flag2.passthrough }
    }
    body.storeBytes(of: flags, toByteOffset: Reply.flags, as: UInt32.self)
    body.storeBytes(of: flags2, toByteOffset: Reply.flags2, as: UInt32.self)
    // Stack depth 1: a store on overlayfs has no passthrough, but the mount can be a layer of another
    // overlay.
    let passthrough = flags2 & Flag2.passthrough != 0
    body.storeBytes(of: passthrough ? 1 : 0, toByteOffset: Reply.maxStackDepth, as: UInt32.self)
    agreed(Agreement(passthrough: passthrough, sharesDirectMaps: flags2 & Flag2.directMaps != 0))
    if isRepeated { return vectors[0].iov_len + vectors[1].iov_len }
    return writev(fd, vectors, count)
  }
}

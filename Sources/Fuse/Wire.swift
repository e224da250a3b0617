// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import CFuse
internal import Glibc
internal import LinuxIO

/// The layout of the kernel's messages (linux/fuse.h), where libfuse 3.14 has no call for a reply or hides a
/// part of a request.
///
/// Numbers are byte offsets.
enum Wire {
  static let headerSize = 40
  static let entrySize = 128
  static let openSize = 16
  static let attributesSize = 104

  /// Operations by the kernel's numbers.
  enum Opcode {
    static let lookup: UInt32 = 1
    static let forget: UInt32 = 2
    static let attributes: UInt32 = 3
    static let setAttributes: UInt32 = 4
    static let makeDirectory: UInt32 = 9
    static let removeName: UInt32 = 10
    static let removeDirectory: UInt32 = 11
    static let rename: UInt32 = 12
    static let link: UInt32 = 13
    static let read: UInt32 = 15
    static let write: UInt32 = 16
    static let release: UInt32 = 18
    static let synchronize: UInt32 = 20
    static let releaseDirectory: UInt32 = 29
    static let synchronizeDirectory: UInt32 = 30
    static let initialize: UInt32 = 26
    static let interrupt: UInt32 = 36
    static let forgetSeveral: UInt32 = 42
    static let allocate: UInt32 = 43
    static let renameWithFlags: UInt32 = 45
    static let copyRange: UInt32 = 47
    static let tmpfile: UInt32 = 51
    static let statx: UInt32 = 52
    static let copyRange64: UInt32 = 53

    /// Whether it is no request, but something that the kernel only has to say.
    static func isUnanswered(_ opcode: UInt32) -> Bool {
      opcode == forget || opcode == forgetSeveral || opcode == interrupt
    }

    /// Whether it may be served by other threads than the one that has read it, and later.
    static func mayWait(_ opcode: UInt32) -> Bool { !isUnanswered(opcode) && opcode != initialize }

    /// Whether the kernel holds locks meanwhile that requests about other objects need: those of names, and
    /// the one for renames.
    static func holdsLocks(_ opcode: UInt32) -> Bool {
      opcode == lookup || opcode == rename || opcode == renameWithFlags
    }

    static func isRelease(_ opcode: UInt32) -> Bool { opcode == release || opcode == releaseDirectory }

    /// Whether nobody waits for the reply, if there is one.
    static func isNotice(_ opcode: UInt32) -> Bool {
      isRelease(opcode) || opcode == forget || opcode == forgetSeveral
    }

  }

  /// How long a request takes usually.
  enum Pace: Equatable {
    case quick
    /// Only reads and writes are `.disk`.
    case slow(SlowKind)

    init(_ message: UnsafeRawBufferPointer, of files: any FileSystem) {
      switch Wire.word(at: 4, of: message) {
      case 15, Opcode.write: self = .slow(.disk)
      case Opcode.synchronize: self = Wire.changesNothing(message, of: files) ? .quick : .slow(.files)
      case Opcode.synchronizeDirectory:
        self = Wire.changesNothing(message, of: files) ? .quick : .slow(.directories)
      case Opcode.allocate, Opcode.copyRange, Opcode.copyRange64: self = .slow(.long)
      // With a size (FATTR_SIZE), and an open that truncates.
      case Opcode.setAttributes:
        self = Wire.word(at: headerSize, of: message) & 1 << 3 != 0 ? .slow(.long) : .quick
      case 14: self = Wire.word(at: headerSize, of: message) & UInt32(O_TRUNC) != 0 ? .slow(.long) : .quick
      case Opcode.rename, Opcode.renameWithFlags:
        let parent = NodeID(Wire.longWord(at: 16, of: message))
        let newParent = NodeID(Wire.longWord(at: headerSize, of: message))
        self = files.isLongRename(from: parent, to: newParent) ? .slow(.names) : .quick
      // Getxattr of what is not stored.
      case 22: self = Wire.isLongAttribute(message, of: files) ? .slow(.long) : .quick
      default: self = .quick
      }
    }
  }

  /// How much a request waits for at most, while the kernel holds the lock of a file or of a directory.
  struct Patience {
    /// So much of its user and its kind waits already.
    let limit: Int
    /// What is answered beyond that: something that has whoever asks do it otherwise, or ask again.
    let error: Errno

    /// Nil for what the kernel holds nothing for that others need.
    init?(_ opcode: UInt32) {
      switch opcode {
      // The kernel copies by itself then, for this call alone, and piece by piece.
      case Opcode.copyRange, Opcode.copyRange64: (limit, error) = (4, .EXDEV)
      case Opcode.setAttributes, Opcode.allocate: (limit, error) = (32, .EINTR)
      // A disk serves many at once.
      case Opcode.synchronize: (limit, error) = (256, .EINTR)
      case Opcode.synchronizeDirectory: (limit, error) = (64, .EINTR)
      case Opcode.rename, Opcode.renameWithFlags: (limit, error) = (16, .EBUSY)
      default: return nil
      }
    }
  }

  /// Whether a request is to write to the disk what its caller can't have changed.
  ///
  /// The kernel holds the file or the directory meanwhile, which are others'.
  private static func changesNothing(
    _ message: UnsafeRawBufferPointer, of files: any FileSystem
  ) -> Bool {
    guard let header = Header(message) else { return false }
    let handle = HandleID(longWord(at: headerSize, of: message))
    return !files.mayHaveChanged(
      header.node, handle: header.opcode == Opcode.synchronize ? handle : nil, header.caller)
  }

  /// Whether this is a question for an attribute that has to be worked out.
  static func isLongAttribute(_ message: UnsafeRawBufferPointer, of files: any FileSystem) -> Bool {
    guard Wire.word(at: 4, of: message) == 22 else { return false }
    let (offset, family): (Int, StaticString) = (headerSize + 8, "system.")
    guard message.count > offset + family.utf8CodeUnitCount, let start = message.baseAddress,
      memcmp(start + offset, family.utf8Start, family.utf8CodeUnitCount) == 0,
      let name = try? Wire.name(at: offset, of: message)
    else { return false }
    return files.isLongAttribute(name)
  }

  /// A request's header; libfuse has checked nothing of it yet.
  struct Header {
    let length: UInt32
    let opcode: UInt32
    let unique: UInt64
    let node: NodeID
    let caller: Caller

    init?(_ message: UnsafeRawBufferPointer) {
      guard message.count >= Wire.headerSize else { return nil }
      length = message.loadUnaligned(as: UInt32.self)
      opcode = message.loadUnaligned(fromByteOffset: 4, as: UInt32.self)
      unique = message.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
      node = NodeID(message.loadUnaligned(fromByteOffset: 16, as: UInt64.self))
      caller = Caller(
        uid: message.loadUnaligned(fromByteOffset: 24, as: UInt32.self),
        gid: message.loadUnaligned(fromByteOffset: 28, as: UInt32.self),
        pid: message.loadUnaligned(fromByteOffset: 32, as: Int32.self), request: RequestID(unique))
    }
  }

  /// The queue that a request is for; nil if it is for those who serve all others.
  static func queue(for message: UnsafeRawBufferPointer, in files: any FileSystem) -> RequestQueue? {
    let opcode = word(at: 4, of: message)
    guard Opcode.mayWait(opcode) else { return nil }
    let node = NodeID(longWord(at: 16, of: message))
    switch opcode {
    case Opcode.lookup:
      guard let name = try? name(at: headerSize, of: message) else { return nil }
      return files.queue(of: node, lookingUp: name)
    // Another node comes first.
    case Opcode.rename, Opcode.renameWithFlags, Opcode.link:
      return files.queue(of: node, lookingUp: nil)
        ?? files.queue(of: NodeID(longWord(at: headerSize, of: message)), lookingUp: nil)
    // struct fuse_copy_file_range_in {fh_in u64, off_in u64, nodeid_out u64...}.
    case 47, Opcode.copyRange64:
      return files.queue(of: node, lookingUp: nil)
        ?? files.queue(of: NodeID(longWord(at: headerSize + 16, of: message)), lookingUp: nil)
    default: return files.queue(of: node, lookingUp: nil)
    }
  }

  /// A number of the request that this thread is decoding, or 0 if the request is too short for it.
  static func word(at offset: Int, of message: UnsafeRawBufferPointer) -> UInt32 {
    guard offset + 4 <= message.count else { return 0 }
    return message.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
  }

  static func longWord(at offset: Int, of message: UnsafeRawBufferPointer) -> UInt64 {
    guard offset + 8 <= message.count else { return 0 }
    return message.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
  }

  /// A name of the request, if it is all there and one that an object can have.
  static func name(at offset: Int, of message: UnsafeRawBufferPointer) throws(Errno) -> Name {
    guard offset < message.count, let start = message.baseAddress.map({ $0 + offset }),
      memchr(start, 0, message.count - offset) != nil
    else { throw .EINVAL }
    return try checked(start.assumingMemoryBound(to: CChar.self))
  }

  /// struct fuse_entry_out, 128 bytes.
  static func write(_ entry: Entry, to out: UnsafeMutableRawPointer) {
    let validity = split(entry.validity)
    let attributeValidity = split(entry.attributes.validity)
    out.storeBytes(of: entry.node?.raw ?? 0, as: UInt64.self)
    out.storeBytes(of: 0, toByteOffset: 8, as: UInt64.self)
    out.storeBytes(of: validity.seconds, toByteOffset: 16, as: UInt64.self)
    out.storeBytes(of: attributeValidity.seconds, toByteOffset: 24, as: UInt64.self)
    out.storeBytes(of: validity.nanoseconds, toByteOffset: 32, as: UInt32.self)
    out.storeBytes(of: attributeValidity.nanoseconds, toByteOffset: 36, as: UInt32.self)
    write(entry.attributes.status, to: out + 40)
  }

  /// struct fuse_attr_out, 104 bytes.
  static func write(_ attributes: Attributes, to out: UnsafeMutableRawPointer) {
    let validity = split(attributes.validity)
    out.storeBytes(of: validity.seconds, as: UInt64.self)
    out.storeBytes(of: validity.nanoseconds, toByteOffset: 8, as: UInt32.self)
    out.storeBytes(of: 0, toByteOffset: 12, as: UInt32.self)
    write(attributes.status, to: out + 16)
  }

  /// Lets `body` have an entry as the kernel takes it.
  static func withBytes<Result>(of entry: Entry, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    var out = InlineArray<128, UInt8>(repeating: 0)
    return withUnsafeMutableBytes(of: &out) { bytes in
      if let base = bytes.baseAddress { write(entry, to: base) }
      return body(UnsafeRawBufferPointer(bytes))
    }
  }

  /// Lets `body` have attributes as the kernel takes them.
  static func withBytes<Result>(
    of attributes: Attributes, _ body: (UnsafeRawBufferPointer) -> Result
  ) -> Result {
    var out = InlineArray<104, UInt8>(repeating: 0)
    return withUnsafeMutableBytes(of: &out) { bytes in
      if let base = bytes.baseAddress { write(attributes, to: base) }
      return body(UnsafeRawBufferPointer(bytes))
    }
  }

  /// struct fuse_open_out, 16 bytes.
  static func write(_ opened: Opened, to out: UnsafeMutableRawPointer) {
    out.storeBytes(of: opened.handle.raw, as: UInt64.self)
    out.storeBytes(of: opened.mode.rawValue, toByteOffset: 8, as: UInt32.self)
    out.storeBytes(of: opened.backing, toByteOffset: 12, as: Int32.self)
  }

  /// struct fuse_attr, 88 bytes.
  private static func write(_ status: FileStatus, to out: UnsafeMutableRawPointer) {
    out.storeBytes(of: UInt64(status.st_ino), as: UInt64.self)
    out.storeBytes(of: UInt64(bitPattern: Int64(status.st_size)), toByteOffset: 8, as: UInt64.self)
    out.storeBytes(of: UInt64(bitPattern: Int64(status.st_blocks)), toByteOffset: 16, as: UInt64.self)
    out.storeBytes(of: Int64(status.st_atim.tv_sec), toByteOffset: 24, as: Int64.self)
    out.storeBytes(of: Int64(status.st_mtim.tv_sec), toByteOffset: 32, as: Int64.self)
    out.storeBytes(of: Int64(status.st_ctim.tv_sec), toByteOffset: 40, as: Int64.self)
    out.storeBytes(of: UInt32(truncatingIfNeeded: status.st_atim.tv_nsec), toByteOffset: 48, as: UInt32.self)
    out.storeBytes(of: UInt32(truncatingIfNeeded: status.st_mtim.tv_nsec), toByteOffset: 52, as: UInt32.self)
    out.storeBytes(of: UInt32(truncatingIfNeeded: status.st_ctim.tv_nsec), toByteOffset: 56, as: UInt32.self)
    out.storeBytes(of: UInt32(status.st_mode), toByteOffset: 60, as: UInt32.self)
    out.storeBytes(of: UInt32(truncatingIfNeeded: status.st_nlink), toByteOffset: 64, as: UInt32.self)
    out.storeBytes(of: UInt32(status.st_uid), toByteOffset: 68, as: UInt32.self)
    out.storeBytes(of: UInt32(status.st_gid), toByteOffset: 72, as: UInt32.self)
    out.storeBytes(of: UInt32(truncatingIfNeeded: status.st_rdev), toByteOffset: 76, as: UInt32.self)
    out.storeBytes(of: UInt32(truncatingIfNeeded: status.st_blksize), toByteOffset: 80, as: UInt32.self)
    out.storeBytes(of: 0, toByteOffset: 84, as: UInt32.self)
  }

  static func split(_ seconds: Double) -> (seconds: UInt64, nanoseconds: UInt32) {
    guard seconds > 0 else { return (0, 0) }
    let whole = UInt64(min(seconds, 1e9))
    return (whole, UInt32(min((seconds - Double(whole)).magnitude * 1e9, 999_999_999)))
  }
}

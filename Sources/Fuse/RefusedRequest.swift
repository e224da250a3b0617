// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO

/// A request that a filesystem has refused by a rule of its own.
package struct RefusedRequest {
  package let operation: RefusedOperation
  /// What it is about, or the directory in which `name` is.
  package let node: NodeID
  /// Valid during the call only.
  package let name: Name?
  package let caller: Caller
  /// What the filesystem has noted on this thread (`clx_note_refusal`).
  package let note: UInt64

  package init(
    _ operation: RefusedOperation, of node: NodeID, name: Name? = nil, by caller: Caller, note: UInt64
  ) {
    self.operation = operation
    self.node = node
    self.name = name
    self.caller = caller
    self.note = note
  }

  init?(_ message: UnsafeRawBufferPointer, note: UInt64) {
    guard let header = Wire.Header(message) else { return nil }
    operation = RefusedOperation(message)
    node = header.node
    name = operation.nameOffset(header.opcode).flatMap { try? Wire.name(at: $0, of: message) }
    caller = header.caller
    self.note = note
  }
}

/// What was to be done, by a word that logs have; the same in all versions.
package enum RefusedOperation: String, Sendable, CaseIterable {
  case read, write, execute, list, access
  case find, status = "see"
  case create, makeDirectory = "make-directory", makeLink = "make-symlink", makeNode = "make-node", link
  case remove, removeDirectory = "remove-directory", rename
  case mode = "change-mode", owner = "change-owner", times = "change-times", truncate
  case readAttribute = "read-attribute", listAttributes = "list-attributes",
    writeAttribute = "write-attribute"
  case allocate, flags = "flags", lock, other

  /// What a request wants, from the kernel's message.
  fileprivate init(_ message: UnsafeRawBufferPointer) {
    self =
      switch Wire.word(at: 4, of: message) {
      case Wire.Opcode.lookup: .find
      case Wire.Opcode.attributes, Wire.Opcode.statx: .status
      case 4: Self.change(Wire.word(at: Wire.headerSize, of: message))
      case 6: .makeLink
      case 8: .makeNode
      case Wire.Opcode.makeDirectory: .makeDirectory
      case Wire.Opcode.removeName: .remove
      case Wire.Opcode.removeDirectory: .removeDirectory
      case Wire.Opcode.rename, Wire.Opcode.renameWithFlags: .rename
      case 13: .link
      case 14: Self.open(Int32(bitPattern: Wire.word(at: Wire.headerSize, of: message)))
      case 15: .read
      case Wire.Opcode.write, 47, Wire.Opcode.copyRange64: .write
      case 21, 24: .writeAttribute
      case 22: .readAttribute
      case 23: .listAttributes
      case 27, 28, 44: .list
      case 31, 32, 33: .lock
      case 34: .access
      case 35, Wire.Opcode.tmpfile: .create
      case 39: .flags
      case 43: .allocate
      default: .other
      }
  }

  /// struct fuse_setattr_in begins with FATTR_MODE, FATTR_UID, FATTR_GID, FATTR_SIZE and those of times.
  private static func change(_ valid: UInt32) -> Self {
    if valid & 1 << 0 != 0 { return .mode }
    if valid & (1 << 1 | 1 << 2) != 0 { return .owner }
    return valid & 1 << 3 != 0 ? .truncate : .times
  }

  /// struct fuse_open_in begins with the flags, among them the kernel's own for execve.
  private static func open(_ flags: Int32) -> Self {
    if flags & 0x20 != 0 { return .execute }
    return flags & O_ACCMODE == O_RDONLY && flags & O_TRUNC == 0 ? .read : .write
  }

  /// Where in the kernel's message the name of the object stands.
  fileprivate func nameOffset(_ opcode: UInt32) -> Int? {
    switch self {
    case .find, .makeLink, .remove, .removeDirectory: Wire.headerSize
    case .makeDirectory, .link: Wire.headerSize + 8
    case .makeNode: Wire.headerSize + 16
    case .create: opcode == Wire.Opcode.tmpfile ? nil : Wire.headerSize + 16
    case .rename: Wire.headerSize + (opcode == Wire.Opcode.rename ? 8 : 16)
    default: nil
    }
  }
}

extension Session {
  /// What a request that has come to nothing is answered; nil if it was postponed.
  ///
  /// The filesystem learns of it, if it has noted why, before whoever waits for the answer may end.
  @inline(never)
  func failed(_ message: UnsafeRawBufferPointer, _ error: Errno) -> Errno? {
    let note = clx_take_refusal()
    if error == .awaitsConsent, postpone(message) { return nil }
    if note != 0, let refused = RefusedRequest(message, note: note) { fileSystem.refused(refused) }
    switch error {
    case .awaitsConsent: return .EPERM
    // What serves a volume has ended: to programs a disk that is gone.
    case .ENOTCONN where fileSystem.hasQueues, .ECONNABORTED where fileSystem.hasQueues: return .EIO
    default: return error
    }
  }
}

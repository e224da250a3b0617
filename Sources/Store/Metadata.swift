// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO
package import Policy

/// What stands beside an object's owner and mode: its ACL and its flags.
package struct Security: Equatable, Sendable {
  package var acl: AccessControl
  package var flags: FileFlags
  /// Whether it has an access control list of the backing filesystem's own, which is not evaluated.
  package var hasBackingACL = false

  package init(acl: AccessControl = .none, flags: FileFlags = []) {
    self.acl = acl
    self.flags = flags
  }

  /// What counts of an object's mode.
  ///
  /// A list of the backing filesystem's own may refuse somebody what the mode gives, whose group bits are the
  /// list's mask. It can't be set through the tree, so somebody else has set it, where others obey it: only
  /// the owner's bits are sure to be what it says.
  package func mode(_ permissions: UInt32) -> UInt32 { permissions & (hasBackingACL ? ~0o077 : .max) }

  /// What nearly all objects have.
  package static let none = Security()

  /// For what can't be read: nothing may be done to it, save by root who puts it right.
  package static let unreadable = Security(acl: .damaged, flags: damagedFlags)

  /// Flags that can't be read stand for the strongest, which root alone takes away.
  package static let damagedFlags: FileFlags = .systemImmutable
}

/// Keeps what an inode can't hold in extended attributes of the backing file, so that it moves, is linked,
/// saved and lost together with it.
///
/// A user's daemon may use attributes of users only, and Linux has those on files and directories alone:
/// fifos, sockets and symbolic links have neither ACL nor flags there (EOPNOTSUPP).
package struct Metadata: Sendable {
  let isSystem: Bool

  package init(isSystem: Bool) { self.isSystem = isSystem }

  /// Under which name the ACL is kept, in the form that ``AccessControlList/filesec`` gives it.
  package var aclName: StaticString { isSystem ? "trusted.insula.acl" : "user.insula.acl" }
  /// Under which name the flags are kept: four bytes, the most significant first.
  package var flagsName: StaticString { isSystem ? "trusted.insula.flags" : "user.insula.flags" }

  /// Reads both; one call where there is neither.
  package func security(of object: FD) throws(Errno) -> Security {
    let names = try attributeNames(of: object)
    if names.isEmpty { return .none }
    var security = Security.none
    if names.contains(.acl) { security.acl = try acl(of: object) }
    if names.contains(.flags) { security.flags = try flags(of: object) }
    security.hasBackingACL = names.contains(.backingACL)
    return security
  }

  /// Replaces the ACL, or removes it.
  package func setACL(_ acl: AccessControlList?, on object: FD) throws(Errno) {
    try set(aclName, to: acl?.filesec, on: object)
  }

  /// Replaces the flags.
  package func setFlags(_ flags: FileFlags, on object: FD) throws(Errno) {
    let word = flags.rawValue
    let bytes = flags.isEmpty ? nil : (0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - 8 * $0)) }
    try set(flagsName, to: bytes, on: object)
  }

  /// What can't be understood of what is kept with an object, for a check that changes nothing; and whether
  /// it has a list of the backing filesystem's own.
  func damage(of object: FD) throws(Errno) -> (acl: Bool, flags: Bool, hasBackingACL: Bool) {
    let names = try attributeNames(of: object)
    return (
      acl: names.contains(.acl) ? try decodedACL(of: object) == .damaged : false,
      flags: names.contains(.flags) ? try decodedFlags(of: object) == nil : false,
      hasBackingACL: names.contains(.backingACL)
    )
  }

  /// Whether the filesystem of a directory keeps such attributes; only a name is asked for that nothing has.
  package func keepsSecurity(on directory: FD) throws(Errno) -> Bool {
    do throws(Errno) {
      _ = try attributeNames(of: directory, orNone: false)
      _ = try read(aclName, of: directory) { _ in }
      return true
    } catch .EOPNOTSUPP {
      return false
    }
  }

  // MARK: Which there are

  private struct Kept: OptionSet {
    let rawValue: UInt8
    static let acl = Kept(rawValue: 1 << 0)
    static let flags = Kept(rawValue: 1 << 1)
    static let backingACL = Kept(rawValue: 1 << 2)
  }

  private func attributeNames(of object: FD, orNone: Bool = true) throws(Errno) -> Kept {
    do throws(Errno) {
      return try attributeNames(of: object, room: 512)
    } catch .ERANGE {
      return try attributeNames(of: object, room: Self.nameLimit)
    } catch .EOPNOTSUPP where orNone {
      return []
    }
  }

  /// The kernel lists no more bytes of names (XATTR_LIST_MAX).
  private static let nameLimit = 1 << 16

  private func attributeNames(of object: FD, room: Int) throws(Errno) -> Kept {
    try withRoom(room) { (room) throws(Errno) in
      kept(in: UnsafeRawBufferPointer(rebasing: room[..<(try object.attributeNames(into: room))]))
    }
  }

  /// Whether what has this name now has certainly neither ACL nor flags.
  package func isBare(_ name: Name, in directory: FD) -> Bool {
    let none = try? withRoom(512) { (room) throws(Errno) in
      let count = try directory.attributeNames(of: name, into: room)
      return count == 0 || kept(in: UnsafeRawBufferPointer(rebasing: room[..<count])).isEmpty
    }
    return none ?? false
  }

  private func kept(in names: UnsafeRawBufferPointer) -> Kept {
    var kept: Kept = []
    for name in names.split(separator: 0) {
      if name.elementsEqual(aclName) { kept.insert(.acl) }
      if name.elementsEqual(flagsName) { kept.insert(.flags) }
      if name.elementsEqual("system.posix_acl_access".utf8) { kept.insert(.backingACL) }
    }
    return kept
  }

  // MARK: Values

  private func acl(of object: FD) throws(Errno) -> AccessControl {
    try withOwnersAccess(to: object) { () throws(Errno) in try decodedACL(of: object) }
  }

  private func flags(of object: FD) throws(Errno) -> FileFlags {
    try withOwnersAccess(to: object) { () throws(Errno) in try decodedFlags(of: object) }
      ?? Security.damagedFlags
  }

  private func decodedACL(of object: FD) throws(Errno) -> AccessControl {
    try read(aclName, of: object) { bytes in
      guard let bytes else { return .none }
      do throws(MalformedACL) {
        return try AccessControlList(filesec: bytes).map { .acl($0) } ?? .none
      } catch {
        return .damaged
      }
    }
  }

  /// Nil if they are damaged.
  private func decodedFlags(of object: FD) throws(Errno) -> FileFlags? {
    try read(flagsName, of: object) { bytes in
      guard let bytes else { return [] }
      guard bytes.count == 4 else { return nil }
      let flags = FileFlags(rawValue: bytes.reduce(0) { $0 << 8 | UInt32($1) })
      return flags.isSubset(of: .ownerSettable.union(.rootSettable)) ? flags : nil
    }
  }

  /// Lends a value, or nil if there is none.
  func read<Value>(
    _ name: StaticString, of object: FD, _ body: (UnsafeRawBufferPointer?) -> Value
  ) throws(Errno) -> Value {
    do throws(Errno) {
      return try withRoom(1 << 16) { (room) throws(Errno) in
        let count = try object.attribute(name.bytes, into: room)
        return body(UnsafeRawBufferPointer(rebasing: room[..<count]))
      }
    } catch .ENODATA {
      return body(nil)
    }
  }

  /// Stores a value, or removes it.
  func set(_ name: StaticString, to value: [UInt8]?, on object: FD) throws(Errno) {
    do throws(Errno) {
      try withOwnersAccess(to: object) { () throws(Errno) in
        guard let value else { return try object.removeAttribute(name.bytes) }
        try withRoom(value.count) { (room) throws(Errno) in
          room.copyBytes(from: value)
          try object.setAttribute(name.bytes, to: UnsafeRawBufferPointer(room), flags: 0)
        }
      }
    } catch .ENODATA {
      // There was nothing to remove.
    } catch .EPERM {
      // A user's attribute on what can't have one.
      throw isSystem ? .EPERM : .EOPNOTSUPP
    }
  }

  /// A user's daemon needs the mode's leave for attributes of users; its user owns the object and may give it
  /// for a moment.
  private func withOwnersAccess<Result>(
    to object: FD, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    do throws(Errno) {
      return try body()
    } catch .EACCES where !isSystem {
      let mode = try object.status().permissions
      guard mode & 0o600 != 0o600 else { throw .EACCES }
      try object.changeMode(mode | 0o600)
      defer { try? object.changeMode(mode) }
      return try body()
    }
  }
}

extension StaticString {
  /// The name as the calls for attributes want it.
  fileprivate var bytes: UnsafePointer<CChar> {
    UnsafeRawPointer(utf8Start).assumingMemoryBound(to: CChar.self)
  }
}

extension Sequence<UInt8> {
  func elementsEqual(_ text: StaticString) -> Bool {
    elementsEqual(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }
}

/// Lends room for bytes, on the stack where it is little.
func withRoom<Result>(
  _ count: Int, _ body: (UnsafeMutableRawBufferPointer) throws(Errno) -> Result
) throws(Errno) -> Result {
  try withUnsafeTemporaryAllocation(byteCount: count, alignment: 8) { (room) throws(Errno) in
    try body(room)
  }
}

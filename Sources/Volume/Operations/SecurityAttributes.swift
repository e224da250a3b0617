// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

// Access control lists and flags as extended attributes: the doors through which the mount lets them be seen
// and changed.
//
// A list has three, for three kinds of visitors. They all lead to the same list; none of them has a value of
// its own.

/// An extended attribute that stands for an object's list, or for its flags.
enum SecurityDoor {
  /// `system.insula.acl`: the list in Apple's binary form, on any object; for Insula's own commands.
  case list
  /// `user.com.apple.system.Security`: the same bytes, for programs that copy attributes of users and leave
  /// `system.*` alone.
  case appleList
  /// `system.nfs4_acl`: as the Linux NFS client shows it, for `nfs4_getfacl` and `nfs4_setfacl`.
  case nfs4List
  /// `system.insula.flags`: the flags as words ("uchg,hidden").
  case flags
  /// `user.org.insula.flags`: the same words, for programs that copy attributes; there is none where there
  /// are no flags.
  case copiedFlags

  static let appleName: StaticString = "user.com.apple.system.Security"
  static let nfs4Name: StaticString = "system.nfs4_acl"
  static let copiedFlagsName: StaticString = "user.org.insula.flags"

  var isOfFlags: Bool { self == .flags || self == .copiedFlags }

  init?(_ name: Name) {
    func isName(_ other: StaticString) -> Bool {
      strcmp(name.bytes, UnsafeRawPointer(other.utf8Start).assumingMemoryBound(to: CChar.self)) == 0
    }
    if isName("system.insula.acl") {
      self = .list
    } else if isName(Self.appleName) {
      self = .appleList
    } else if isName(Self.nfs4Name) {
      self = .nfs4List
    } else if isName("system.insula.flags") {
      self = .flags
    } else if isName(Self.copiedFlagsName) {
      self = .copiedFlags
    } else {
      return nil
    }
  }
}

extension View {
  /// What an object's list, or its flags, look like through a door.
  func securityValue(
    _ door: SecurityDoor, of node: borrowing NodeTable.Pin, by caller: Caller
  ) throws(Errno) -> [UInt8] {
    let object = object(try node.fd.status(), node)
    if door.isOfFlags {
      // Part of what stat(2) tells on a Mac.
      if object.hasList { try authorize(.readAttributes, on: object, by: caller) }
      if door == .copiedFlags, object.flags.isEmpty { throw .ENODATA }
      return Array(object.flags.words.utf8)
    }
    try authorize(.readSecurity, on: object, by: caller)
    switch object.acl {
    case .damaged: throw .EIO
    case .list(let list):
      guard door == .nfs4List else { return list.filesec }
      return try nfs4(list)
    case .none:
      guard door == .nfs4List, object.kind != .symlink else { throw .ENODATA }
      return try nfs4(AccessControlList(mode: object.mode, isDirectory: object.isDirectory))
    }
  }

  /// Sets an object's list, or its flags, from what was put through a door.
  func setSecurity(
    _ door: SecurityDoor, of node: borrowing NodeTable.Pin, to value: UnsafeRawBufferPointer, flags: Int32,
    by caller: Caller
  ) throws(Errno) {
    let status = try node.fd.status()
    let object = object(status, node)
    if door.isOfFlags {
      guard let new = FileFlags(words: String(decoding: value, as: UTF8.self)) else { throw .EINVAL }
      try authorizeFlags(new, on: object, by: caller)
      try check(flags, exists: !object.flags.isEmpty)
      let brought = door == .copiedFlags ? new.subtracting(object.flags).intersection(.restraining) : []
      // Noted before they are there, so that there is no moment in which they hold too soon.
      if !brought.isEmpty { volume.arrivingFlags.note(brought, for: node.number, by: caller.uid) }
      try setFlags(new, of: node, status, object)
      if door == .flags { volume.arrivingFlags.end(node.number) }
      return
    }
    try authorizeAsOwner(.writeSecurity, on: object, by: caller)
    if object.kind == .symlink { throw .EOPNOTSUPP }
    let list = try list(door, from: value)
    // Through this door every file shows a list, and nfs4_setfacl asks to replace it.
    let flags = door == .nfs4List ? flags & ~Self.replaceFlag : flags
    try check(flags, exists: object.hasList)
    try setList(list, of: node, status, object)
  }

  /// Takes an object's list, or its flags, away.
  func removeSecurity(
    _ door: SecurityDoor, of node: borrowing NodeTable.Pin, by caller: Caller
  ) throws(Errno) {
    let status = try node.fd.status()
    let object = object(status, node)
    if door.isOfFlags {
      try authorizeFlags([], on: object, by: caller)
      if object.flags.isEmpty { throw .ENODATA }
      return try setFlags([], of: node, status, object)
    }
    try authorizeAsOwner(.writeSecurity, on: object, by: caller)
    if !object.hasList { throw .ENODATA }
    try setList(nil, of: node, status, object)
  }

  /// Replaces the flags, which the caller may.
  func setFlags(
    _ flags: FileFlags, of node: borrowing NodeTable.Pin, _ status: FileStatus, _ object: Object
  ) throws(Errno) {
    // Where they are what damaged ones count as, they may be damaged.
    guard flags != object.flags || flags == Security.damagedFlags else { return }
    try volume.metadata.setFlags(flags, on: node.fd)
    securityChanged(status, node, from: object)
  }

  private func setList(
    _ list: AccessControlList?, of node: borrowing NodeTable.Pin, _ status: FileStatus, _ object: Object
  ) throws(Errno) {
    if object.acl == list.map({ .list($0) }) ?? .none { return }
    try volume.metadata.setList(list, on: node.fd)
    securityChanged(status, node, from: object)
  }

  /// The two flags of `setxattr(2)`.
  private func check(_ flags: Int32, exists: Bool) throws(Errno) {
    if flags & Self.createFlag != 0, exists { throw .EEXIST }
    if flags & Self.replaceFlag != 0, !exists { throw .ENODATA }
  }

  /// Corresponds to `XATTR_CREATE` and `XATTR_REPLACE`.
  private static var createFlag: Int32 { 1 }
  private static var replaceFlag: Int32 { 2 }

  // MARK: Forms

  private func list(
    _ door: SecurityDoor, from value: UnsafeRawBufferPointer
  ) throws(Errno) -> AccessControlList? {
    do throws(MalformedList) {
      guard door == .nfs4List else { return try AccessControlList(filesec: value) }
      return try AccessControlList(nfs4: value, names: .ofThisMachineAlone)
    } catch {
      throw Errno(error)
    }
  }

  private func nfs4(_ list: AccessControlList) throws(Errno) -> [UInt8] {
    do throws(MalformedList) {
      return try list.nfs4(names: .ofThisMachineAlone)
    } catch {
      throw Errno(error)
    }
  }
}

extension Errno {
  fileprivate init(_ error: MalformedList) {
    switch error {
    case .malformed: self = .EINVAL
    case .tooManyEntries: self = .E2BIG
    case .inexpressible: self = .EOPNOTSUPP
    }
  }
}

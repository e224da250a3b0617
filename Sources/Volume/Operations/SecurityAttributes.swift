// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

// ACLs and flags as extended attributes: the xattr aliases through which the mount lets them be seen and
// changed.
//
// An ACL has three aliases, for three kinds of programs. All are views of the same ACL; none has a value of
// its own.

/// An extended attribute that stands for an object's ACL, or for its flags.
enum XattrAlias {
  /// `system.insula.acl`: the ACL in Apple's binary form, on any object; for Insula's own commands.
  case acl
  /// `user.com.apple.system.Security`: the same bytes, for programs that copy attributes of users and leave
  /// `system.*` alone.
  case appleACL
  /// `system.nfs4_acl`: as the Linux NFS client shows it, for `nfs4_getfacl` and `nfs4_setfacl`.
  case nfs4ACL
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
      self = .acl
    } else if isName(Self.appleName) {
      self = .appleACL
    } else if isName(Self.nfs4Name) {
      self = .nfs4ACL
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
  /// What an object's ACL, or its flags, look like through an xattr alias.
  func securityValue(
    _ alias: XattrAlias, of node: borrowing NodeTable.Reference, by caller: Caller
  ) throws(Errno) -> [UInt8] {
    let object = try object(try node.fd.status(), node)
    if alias.isOfFlags {
      // Part of what stat(2) tells on a Mac.
      if object.hasACL { try gate.authorize(.readAttributes, on: object, by: caller) }
      if alias == .copiedFlags, object.flags.isEmpty { throw .ENODATA }
      return Array(object.flags.words.utf8)
    }
    try gate.authorize(.readSecurity, on: object, by: caller)
    switch object.acl {
    case .damaged: throw .EIO
    case .acl(let acl):
      guard alias == .nfs4ACL else {
        return acl.filesec(ownedBy: isForBackup ? .user(object.uid) : nil)
      }
      return try nfs4(acl)
    case .none:
      guard alias == .nfs4ACL, object.kind != .symlink else { throw .ENODATA }
      return try nfs4(AccessControlList(mode: object.mode, isDirectory: object.isDirectory))
    }
  }

  /// Sets an object's ACL, or its flags, from what was put through an xattr alias.
  func setSecurity(
    _ alias: XattrAlias, of node: borrowing NodeTable.Reference, to value: UnsafeRawBufferPointer,
    flags: Int32,
    by caller: Caller
  ) throws(Errno) {
    let status = try node.fd.status()
    let object = try object(status, node)
    let isAllowed = isAllowed(caller.request)
    if alias.isOfFlags {
      guard let new = FileFlags(words: String(decoding: value, as: UTF8.self)) else { throw .EINVAL }
      if !isAllowed {
        try gate.authorizeFlags(new, on: object, by: caller)
        try check(flags, exists: !object.flags.isEmpty)
      }
      let brought = alias == .copiedFlags ? new.subtracting(object.flags).intersection(.restraining) : []
      // Noted before they are there, so that there is no moment in which they hold too soon.
      if !brought.isEmpty { volume.arrivingFlags.note(brought, for: node.number, by: caller.uid) }
      try setFlags(new, of: node, status, object, for: caller.request)
      if alias == .flags { volume.arrivingFlags.end(node.number) }
      return
    }
    if !isAllowed { try gate.authorizeAsOwner(.writeSecurity, on: object, by: caller) }
    if object.kind == .symlink { throw .EOPNOTSUPP }
    let acl = try acl(alias, from: value)
    // Through this xattr alias every file shows an ACL, and nfs4_setfacl asks to replace it.
    let flags = alias == .nfs4ACL ? flags & ~Self.replaceFlag : flags
    if !isAllowed { try check(flags, exists: object.hasACL) }
    try setACL(acl, of: node, status, object, for: caller.request)
  }

  /// Whether another worker has asked the gate for this very request: what it has done since may have taken
  /// the caller's right away.
  private func isAllowed(_ request: RequestID) -> Bool { left(by: request) != nil }

  /// Takes an object's ACL, or its flags, away.
  func removeSecurity(
    _ alias: XattrAlias, of node: borrowing NodeTable.Reference, by caller: Caller
  ) throws(Errno) {
    let status = try node.fd.status()
    let object = try object(status, node)
    if alias.isOfFlags {
      if !isAllowed(caller.request) {
        try gate.authorizeFlags([], on: object, by: caller)
        if object.flags.isEmpty { throw .ENODATA }
      }
      return try setFlags([], of: node, status, object, for: caller.request)
    }
    if !isAllowed(caller.request) {
      try gate.authorizeAsOwner(.writeSecurity, on: object, by: caller)
      if !object.hasACL { throw .ENODATA }
    }
    try setACL(nil, of: node, status, object, for: caller.request)
  }

  /// Replaces the flags, which the caller may.
  func setFlags(
    _ flags: FileFlags, of node: borrowing NodeTable.Reference, _ status: FileStatus, _ object: Object,
    for request: RequestID
  ) throws(Errno) {
    // Where they are what damaged ones count as, they may be damaged.
    guard flags != object.flags || flags == Security.damagedFlags else { return }
    guard volume.attached.keepAttributes(on: node.number) else { throw .EOPNOTSUPP }
    let fd = node.fd
    try once(request) { () throws(Errno) in
      try volume.metadata.setFlags(flags, on: fd)
      return 0
    }
    securityChanged(status, node, from: object)
  }

  private func setACL(
    _ acl: AccessControlList?, of node: borrowing NodeTable.Reference, _ status: FileStatus, _ object: Object,
    for request: RequestID
  ) throws(Errno) {
    if object.acl == acl.map({ .acl($0) }) ?? .none { return }
    guard volume.attached.keepAttributes(on: node.number) else { throw .EOPNOTSUPP }
    let fd = node.fd
    try once(request) { () throws(Errno) in
      try volume.metadata.setACL(acl, on: fd)
      return 0
    }
    securityChanged(status, node, from: object)
  }

  /// The two flags of `setxattr(2)`.
  private func check(_ flags: Int32, exists: Bool) throws(Errno) {
    if flags & Self.createFlag != 0, exists { throw .EEXIST }
    if flags & Self.replaceFlag != 0, !exists { throw .ENODATA }
  }

  /// Corresponds to `XATTR_CREATE` and `XATTR_REPLACE`.
  static var createFlag: Int32 { 1 }
  private static var replaceFlag: Int32 { 2 }

  // MARK: Forms

  private func acl(
    _ alias: XattrAlias, from value: UnsafeRawBufferPointer
  ) throws(Errno) -> AccessControlList? {
    do throws(MalformedACL) {
      guard alias == .nfs4ACL else { return try AccessControlList(filesec: value) }
      return try AccessControlList(nfs4: value, names: .ofThisMachineAlone)
    } catch {
      throw Errno(error)
    }
  }

  private func nfs4(_ acl: AccessControlList) throws(Errno) -> [UInt8] {
    do throws(MalformedACL) {
      return try acl.nfs4(names: .ofThisMachineAlone)
    } catch {
      throw Errno(error)
    }
  }
}

extension Errno {
  fileprivate init(_ error: MalformedACL) {
    switch error {
    case .malformed: self = .EINVAL
    case .tooManyEntries: self = .E2BIG
    case .inexpressible: self = .EOPNOTSUPP
    }
  }
}

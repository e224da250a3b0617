// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import Fuse
internal import Glibc
package import LinuxIO
internal import Policy

// Extended attributes. Insula keeps what an inode can't hold in attributes of its own, which do not exist for anyone
// outside; access control lists of POSIX are another model than ours, and refused.

extension View {
  package func attribute(
    _ name: Name, of node: NodeID, into buffer: UnsafeMutableRawBufferPointer, by caller: Caller
  ) throws(Errno) -> Int {
    switch AttributeFamily(name) {
    case .ours: throw .ENODATA
    case .posixACL: throw .EOPNOTSUPP
    case .trusted where caller.uid != 0: throw .ENODATA
    case .user:
      let object = try nodes.pin(node)
      try authorize(.readExtended, on: try object.fd.status(), zone: object.zone, by: caller)
      return try object.fd.attribute(name.bytes, into: buffer)
    case .trusted, .capability, .security, .other:
      let object = try nodes.pin(node)
      return try object.fd.attribute(name.bytes, into: buffer)
    }
  }

  package func attributeNames(
    of node: NodeID, into buffer: UnsafeMutableRawBufferPointer, by caller: Caller
  ) throws(Errno) -> Int {
    let object = try nodes.pin(node)
    let size = try object.fd.attributeNames(into: UnsafeMutableRawBufferPointer(start: nil, count: 0))
    guard size > 0 else { return 0 }
    return try withUnsafeTemporaryAllocation(byteCount: size, alignment: 1) { (all) throws(Errno) in
      let count = try object.fd.attributeNames(into: all)
      let shown = keepShown(UnsafeMutableRawBufferPointer(rebasing: all[..<count]), to: caller)
      guard buffer.count > 0 else { return shown }
      guard shown <= buffer.count else { throw .ERANGE }
      buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(all)[..<shown]))
      return shown
    }
  }

  package func setAttribute(
    _ name: Name, of node: NodeID, to value: UnsafeRawBufferPointer, flags: Int32, by caller: Caller
  ) throws(Errno) {
    let object = try nodes.pin(node)
    try authorizeChange(of: name, on: try object.fd.status(), zone: object.zone, by: caller)
    try object.fd.setAttribute(name.bytes, to: value, flags: flags)
  }

  package func removeAttribute(_ name: Name, of node: NodeID, by caller: Caller) throws(Errno) {
    let object = try nodes.pin(node)
    let status = try object.fd.status()
    if AttributeFamily(name) == .capability {
      // The kernel removes a file's capabilities in the name of whoever writes to it; who asks by removexattr(2) without
      // the capability to, it has refused already.
      try authorize(.write, on: status, zone: object.zone, by: caller)
    } else {
      try authorizeChange(of: name, on: status, zone: object.zone, by: caller)
    }
    try object.fd.removeAttribute(name.bytes)
  }

  private func authorizeChange(
    of name: Name, on status: FileStatus, zone: Zone, by caller: Caller
  ) throws(Errno) {
    if zone.isSealed { throw .EROFS }
    switch AttributeFamily(name) {
    case .ours: throw .EPERM
    case .posixACL: throw .EOPNOTSUPP
    case .user:
      // On a sticky directory, which everyone may write to, only its owner sets them. Corresponds to `xattr(7)`.
      let sticky = status.isDirectory && status.st_mode & S_ISVTX != 0
      if sticky, caller.uid != 0, caller.uid != status.st_uid { throw .EPERM }
      try authorize(.writeExtended, on: status, zone: zone, by: caller)
    // The kernel has asked for the capability already; where the daemon is root, nobody else may get here.
    case .trusted, .capability, .security: if volume.settings.isSystem, caller.uid != 0 { throw .EPERM }
    case .other: if volume.settings.isSystem, caller.uid != 0 { throw .EOPNOTSUPP }
    }
  }

  /// Moves the names that the caller may see to the front; gives their total length.
  private func keepShown(_ names: UnsafeMutableRawBufferPointer, to caller: Caller) -> Int {
    guard let base = names.baseAddress else { return 0 }
    var shown = 0
    var position = 0
    while position < names.count {
      // The list ends in a zero; should it not, the rest is dropped.
      guard memchr(base + position, 0, names.count - position) != nil else { break }
      let name = Name((base + position).assumingMemoryBound(to: CChar.self))
      let length = name.length + 1
      let family = AttributeFamily(name)
      if family != .ours, family != .posixACL, family != .trusted || caller.uid == 0 {
        memmove(base + shown, base + position, length)
        shown += length
      }
      position += length
    }
    return shown
  }
}

/// What an extended attribute's name says about who may use it.
private enum AttributeFamily {
  case user, trusted, security, capability, ours, posixACL, other

  init(_ name: Name) {
    func begins(_ prefix: StaticString) -> Bool {
      strncmp(name.bytes, prefix.utf8Start, prefix.utf8CodeUnitCount) == 0
    }
    if begins("user.") {
      self = begins("user.insula.") ? .ours : .user
    } else if begins("trusted.") {
      self = begins("trusted.insula.") ? .ours : .trusted
    } else if begins("security.") {
      self = strcmp(name.bytes, "security.capability") == 0 ? .capability : .security
    } else {
      self = begins("system.posix_acl_") ? .posixACL : .other
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import Fuse
internal import Glibc
package import LinuxIO
internal import Policy

// Extended attributes. Insula keeps what an inode can't hold in attributes of its own, which do not exist for
// anyone outside; access control lists of POSIX are another model than ours, and refused.

extension View {
  package func attribute(
    _ name: Name, of node: NodeID, into buffer: UnsafeMutableRawBufferPointer, by caller: Caller
  ) throws(Errno) -> Int {
    if asks(node) { throw .ENODATA }
    if name.isBareApple {
      return try name.withUserPrefix { (name) throws(Errno) in
        try attribute(name, of: node, into: buffer, by: caller)
      }
    }
    switch AttributeFamily(name) {
    case .ours: throw .ENODATA
    case .security(let alias):
      return try Self.give(
        try securityValue(alias, of: try nodes.reference(to: node), by: caller), into: buffer)
    case .type(let attribute):
      return try Self.give(
        try typeValue(attribute, of: try nodes.reference(to: node), by: caller), into: buffer)
    case .shown(let attribute):
      return try Self.give(try shownValue(attribute, of: node, by: caller), into: buffer)
    case .posixACL: throw .EOPNOTSUPP
    case .trusted where caller.uid != 0: throw .ENODATA
    case .user:
      let object = try nodes.reference(to: node)
      let status = try object.fd.status()
      try gate.authorize(.readExtended, on: self.object(status, object), by: caller)
      guard volume.attached.keepUserAttributes(on: object.number) else { throw .EOPNOTSUPP }
      nodes.prepareForAttributes(object, status)
      return try object.fd.attribute(name.bytes, into: buffer)
    case .label:
      let object = try nodes.reference(to: node)
      guard volume.attached.keepUserAttributes(on: object.number) else { throw .EOPNOTSUPP }
      do throws(Errno) {
        return try object.fd.attribute(name.bytes, into: buffer)
      } catch .ENODATA {
        // Then programs (ls -l) don't ask for that of each file.
        throw .EOPNOTSUPP
      }
    case .trusted, .capability, .kernel, .other:
      let object = try nodes.reference(to: node)
      // The kernel asks for what a program is to be capable of.
      if object.isOnVolume, case .capability = AttributeFamily(name) { throw .ENODATA }
      return try object.fd.attribute(name.bytes, into: buffer)
    }
  }

  private static func give(_ value: [UInt8], into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int
  {
    guard buffer.count > 0 else { return value.count }
    guard value.count <= buffer.count else { throw .ERANGE }
    buffer.copyBytes(from: value)
    return value.count
  }

  package func attributeNames(
    of node: NodeID, into buffer: UnsafeMutableRawBufferPointer, by caller: Caller
  ) throws(Errno) -> Int {
    let object = try nodes.reference(to: node)
    let status = try object.fd.status()
    if asks(node) { return 0 }
    let judged = try self.object(status, object)
    try gate.authorizeAttributeNames(of: judged, by: caller)
    let aliases = listedAliases(of: judged)
    nodes.prepareForAttributes(object, status)
    let size =
      volume.attached.keepUserAttributes(on: object.number)
      ? try object.fd.attributeNames(into: UnsafeMutableRawBufferPointer(start: nil, count: 0)) : 0
    guard size > 0 || !aliases.isEmpty else { return 0 }
    return try withUnsafeTemporaryAllocation(byteCount: size + aliases.count, alignment: 1) {
      (all) throws(Errno) in
      let count = try object.fd.attributeNames(into: UnsafeMutableRawBufferPointer(rebasing: all[..<size]))
      let names = UnsafeMutableRawBufferPointer(rebasing: all[..<count])
      var shown = keepShown(names, to: caller, onVolume: object.isOnVolume ? object.fd : nil)
      UnsafeMutableRawBufferPointer(rebasing: all[shown...]).copyBytes(from: aliases)
      shown += aliases.count
      guard buffer.count > 0 else { return shown }
      guard shown <= buffer.count else { throw .ERANGE }
      buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(all)[..<shown]))
      return shown
    }
  }

  package func setAttribute(
    _ name: Name, of node: NodeID, to value: UnsafeRawBufferPointer, flags: Int32, by caller: Caller
  ) throws(Errno) {
    if name.isBareApple {
      return try name.withUserPrefix { (name) throws(Errno) in
        try setAttribute(name, of: node, to: value, flags: flags, by: caller)
      }
    }
    let object = try nodes.reference(to: node)
    if case .security(let alias) = AttributeFamily(name) {
      return try setSecurity(alias, of: object, to: value, flags: flags, by: caller)
    }
    let status = try object.fd.status()
    try authorizeChange(of: name, on: self.object(status, object), object.fd, by: caller)
    guard volume.attached.keepUserAttributes(on: object.number) else { throw .EOPNOTSUPP }
    nodes.prepareForAttributes(object, status)
    if flags & Self.createFlag != 0 {
      try create(name, of: object, with: value, flags: flags, for: caller.request)
    } else {
      try object.fd.setAttribute(name.bytes, to: value, flags: flags)
    }
    attributesChanged(of: object.number)
  }

  /// Sets an attribute that is not there, unless another worker has done that for this very request.
  private func create(
    _ name: Name, of object: borrowing NodeTable.Reference, with value: UnsafeRawBufferPointer, flags: Int32,
    for request: RequestID
  ) throws(Errno) {
    let fd = object.fd
    if let left = left(by: request), left.isDone != 0 || fd.has(name, value) { return }
    if fd.has(name) { throw .EEXIST }
    try once(request) { () throws(Errno) in
      try fd.setAttribute(name.bytes, to: value, flags: flags)
      return 0
    }
  }

  package func removeAttribute(_ name: Name, of node: NodeID, by caller: Caller) throws(Errno) {
    if name.isBareApple {
      return try name.withUserPrefix { (name) throws(Errno) in
        try removeAttribute(name, of: node, by: caller)
      }
    }
    let object = try nodes.reference(to: node)
    let judged = try self.object(try object.fd.status(), object)
    switch AttributeFamily(name) {
    case .security(let alias):
      return try removeSecurity(alias, of: object, by: caller)
    case .capability:
      // The kernel removes a file's capabilities in the name of whoever writes to it; who asks by
      // removexattr(2) without the capability to, it has refused already.
      try gate.authorizeCapabilityRemoval(on: judged, by: caller)
    default:
      try authorizeChange(of: name, on: judged, object.fd, by: caller)
    }
    try remove(name, from: object, for: caller.request)
    attributesChanged(of: object.number)
  }

  /// Takes away an attribute that is there, unless another worker has done that for this very request.
  private func remove(
    _ name: Name, from object: borrowing NodeTable.Reference, for request: RequestID
  ) throws(Errno) {
    let fd = object.fd
    let left = left(by: request)
    guard fd.has(name) else {
      if left == nil { throw .ENODATA }
      return
    }
    if left?.isDone == 1 { return }
    try once(request) { () throws(Errno) in
      try fd.removeAttribute(name.bytes)
      return 0
    }
  }

  private func authorizeChange(
    of name: Name, on object: Object, _ fd: FD, by caller: Caller
  ) throws(Errno) {
    let isRoots = volume.settings.isSystem
    let family = AttributeFamily(name)
    let namespace: AttributeNamespace =
      switch family {
      case .ours: .reserved
      case .user where BackupMark(name) == nil: .user
      case .user: app == nil || volume.isInContainer(fd) ? .backupMark : .reserved
      case .trusted, .capability, .kernel, .label: .privileged(isRoots: isRoots)
      case .posixACL, .security, .type, .shown, .other: .other
      }
    try gate.authorizeExtendedAttribute(in: namespace, on: object, by: caller)
    switch family {
    case .ours, .user, .trusted, .capability, .kernel, .label: return
    // What something is follows from its name.
    case .posixACL, .type, .shown: throw .EOPNOTSUPP
    // These have ways of their own.
    case .security: throw .EINVAL
    case .other: if isRoots, caller.uid != 0 { throw .EOPNOTSUPP }
    }
  }

  /// Moves the names that the caller may see to the front; gives their total length.
  ///
  /// A program that copies attributes fails if a list names one that can't be read. On a volume that is so
  /// for what a program is capable of, which is not asked there, and for whatever a server lists and does not
  /// have.
  private func keepShown(
    _ names: UnsafeMutableRawBufferPointer, to caller: Caller, onVolume object: FD?
  ) -> Int {
    guard let base = names.baseAddress else { return 0 }
    var shown = 0
    var position = 0
    while position < names.count {
      // The list ends in a zero; should it not, the rest is dropped.
      guard memchr(base + position, 0, names.count - position) != nil else { break }
      let name = Name((base + position).assumingMemoryBound(to: CChar.self))
      let length = name.length + 1
      let isShown =
        switch AttributeFamily(name) {
        case .ours, .posixACL, .security, .type, .shown: false
        case .trusted: caller.uid == 0
        case .capability: object == nil
        case .user, .kernel, .label, .other: true
        }
      if isShown, object?.lacksAttribute(name) != true {
        memmove(base + shown, base + position, length)
        shown += length
      }
      position += length
    }
    return shown
  }
}

extension Name {
  /// Whether it is an attribute's name as it is on a Mac.
  ///
  /// Linux keeps attributes of users only with `user.` before their names, so such a name stands for the one
  /// with it. Lists have that one alone: who copies what is listed has each attribute once.
  fileprivate var isBareApple: Bool { strncmp(bytes, "com.apple.", 10) == 0 }

  /// Calls `body` with the name under which the attribute is kept.
  fileprivate func withUserPrefix<Result>(
    _ body: (Name) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    let count = length + 1
    return try withUnsafeTemporaryAllocation(of: CChar.self, capacity: 5 + count) { (kept) throws(Errno) in
      guard let start = kept.baseAddress else { throw .ENOMEM }
      memcpy(start, "user.", 5)
      memcpy(start + 5, bytes, count)
      return try body(Name(start))
    }
  }
}

extension FD {
  /// Whether the object has an attribute.
  fileprivate func has(_ name: Name) -> Bool {
    (try? attribute(name.bytes, into: UnsafeMutableRawBufferPointer(start: nil, count: 0))) != nil
  }

  /// Whether it has one with this value.
  fileprivate func has(_ name: Name, _ value: UnsafeRawBufferPointer) -> Bool {
    withUnsafeTemporaryAllocation(byteCount: value.count + 1, alignment: 1) { buffer in
      guard let count = try? attribute(name.bytes, into: buffer) else { return false }
      return buffer[..<count].elementsEqual(value)
    }
  }
}

/// The names of the xattr aliases that are listed, where there is something behind them, for programs that
/// copy what they find.
private func listedAliases(of object: Object) -> [UInt8] {
  guard object.acl != .none || !object.flags.isEmpty else { return [] }
  var names: [UInt8] = []
  func add(_ name: StaticString) {
    names += UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
    names.append(0)
  }
  // Linux has attributes of users on these two alone.
  let hasUserAttributes = object.kind == .file || object.kind == .directory
  if case .acl = object.acl {
    if hasUserAttributes { add(XattrAlias.appleName) }
    add(XattrAlias.nfs4Name)
  }
  // Last, so that what is copied before is not in their way.
  if hasUserAttributes, !object.flags.isEmpty { add(XattrAlias.copiedFlagsName) }
  return names
}

/// What an extended attribute's name says about who may use it.
enum AttributeFamily {
  case user, trusted, capability, ours, posixACL, other
  /// `security.*`, which is the kernel's own.
  case kernel
  /// SELinux's label. Where SELinux is on, the kernel answers for it and nobody asks here.
  case label
  /// Stands for the object's list or flags.
  case security(XattrAlias)
  /// Says what something is.
  case type(TypeAttribute)
  /// Says how it is shown.
  case shown(ShownAttribute)

  init(_ name: Name) {
    if let alias = XattrAlias(name) {
      self = .security(alias)
      return
    }
    func begins(_ prefix: StaticString) -> Bool {
      strncmp(name.bytes, prefix.utf8Start, prefix.utf8CodeUnitCount) == 0
    }
    if begins("user.") {
      self = begins("user.insula.") ? .ours : .user
    } else if begins("trusted.") {
      self = begins("trusted.insula.") ? .ours : .trusted
    } else if begins("security.") {
      self =
        strcmp(name.bytes, "security.capability") == 0
        ? .capability : strcmp(name.bytes, "security.selinux") == 0 ? .label : .kernel
    } else if begins("system.posix_acl_") {
      self = .posixACL
    } else if begins(TypeAttribute.prefix), let attribute = TypeAttribute(name) {
      self = .type(attribute)
    } else {
      self = ShownAttribute(name).map { .shown($0) } ?? .other
    }
  }
}

extension FD {
  /// Whether an attribute can't be read, though a list names it.
  fileprivate func lacksAttribute(_ name: Name) -> Bool {
    do throws(Errno) {
      _ = try attribute(name.bytes, into: UnsafeMutableRawBufferPointer(start: nil, count: 0))
      return false
    } catch {
      return error == .ENODATA || error == .EOPNOTSUPP
    }
  }
}

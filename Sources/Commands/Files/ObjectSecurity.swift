// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

/// The ACL and the flags of one object.
struct ObjectSecurity {
  let fd: FD
  let aliases: XattrAliases

  /// Larger than any value that is kept there.
  private static let largest = 1 << 16

  /// The ACL, or nil if there is none.
  func acl() throws(CommandFailure) -> AccessControlList? {
    let bytes: [UInt8]
    do throws(Errno) {
      guard let value = try fd.attributeValue(aliases.acl, limit: Self.largest) else { return nil }
      bytes = value
    } catch {
      // So says the mount of an ACL that it can't read.
      throw error == .EIO ? .damagedACL("it can't be read") : failure(error)
    }
    do throws(MalformedACL) {
      // The rethrowing call knows no typed errors; a buffer of our own does.
      let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 8)
      defer { buffer.deallocate() }
      buffer.copyBytes(from: bytes)
      return try AccessControlList(filesec: UnsafeRawBufferPointer(buffer))
    } catch {
      throw .damagedACL(error.words)
    }
  }

  func setACL(_ acl: AccessControlList?) throws(CommandFailure) {
    if let acl {
      try write(acl.filesec, to: aliases.acl)
    } else {
      try remove(aliases.acl)
    }
  }

  func flags() throws(CommandFailure) -> FileFlags {
    let bytes: [UInt8]?
    do throws(Errno) {
      bytes = try fd.attributeValue(aliases.flags, limit: Self.largest)
    } catch {
      throw failure(error)
    }
    let words = String(decoding: bytes ?? [], as: UTF8.self)
    guard let flags = FileFlags(words: words) else {
      throw CommandFailure(.failed, "its flags '\(words)' are unknown to this version of insula")
    }
    return flags
  }

  func setFlags(_ flags: FileFlags) throws(CommandFailure) {
    try write(Array(flags.words.utf8), to: aliases.flags)
  }

  private func write(_ bytes: [UInt8], to name: String) throws(CommandFailure) {
    do throws(Errno) {
      try name.withName { (name) throws(Errno) in
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 8)
        defer { buffer.deallocate() }
        buffer.copyBytes(from: bytes)
        try fd.setAttribute(name.bytes, to: UnsafeRawBufferPointer(buffer), flags: 0)
      }
    } catch {
      throw failure(error)
    }
  }

  private func remove(_ name: String) throws(CommandFailure) {
    do throws(Errno) {
      try name.withName { (name) throws(Errno) in try fd.removeAttribute(name.bytes) }
    } catch {
      guard error != .ENODATA else { return }
      throw failure(error)
    }
  }

  private func failure(_ error: Errno) -> CommandFailure {
    guard error == .EOPNOTSUPP else { return CommandFailure(error) }
    return (try? fd.status().isSymlink) ?? false ? .symlinkHasNone : .notOurs
  }
}

extension CommandFailure {
  fileprivate static func damagedACL(_ why: String) -> CommandFailure {
    CommandFailure(
      .failed,
      "its ACL is damaged (\(why)), so only root can access the file; as root "
        + "or the owner, remove the ACL with 'insula acl -N' or replace it with 'insula acl -E'")
  }

  fileprivate static let symlinkHasNone = CommandFailure(
    .failed, "a symbolic link has none; its target may have")
  fileprivate static let notOurs = CommandFailure(
    .failed, "is not on an insula mount, or on a volume that keeps neither ACLs nor flags")

  /// Whether nothing is wrong but that there is no such thing.
  var meansNotOurs: Bool { self == .symlinkHasNone || self == .notOurs }
}

extension MalformedACL {
  /// For messages.
  var words: String {
    switch self {
    case .malformed(let words), .inexpressible(let words): words
    case .tooManyEntries: "it has more than \(AccessControlList.maximumCount) entries"
    }
  }
}

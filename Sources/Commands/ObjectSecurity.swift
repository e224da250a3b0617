// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

/// The attributes through which lists and flags of a mounted file are read and changed.
struct SecurityDoors: Equatable, Sendable {
  /// The list, in Apple's binary form.
  let list: String
  /// The flags, as words.
  let flags: String
  /// What else of them is among the attributes, for programs that copy those.
  let copies: [String]

  /// Those of an insula mount.
  static let mounted = SecurityDoors(
    list: "system.insula.acl", flags: "system.insula.flags",
    copies: ["user.com.apple.system.Security", "system.nfs4_acl", "user.org.insula.flags"])

  /// Whether an attribute is one of these, and not one that somebody has given to the file.
  func contains(_ attribute: String) -> Bool {
    attribute == list || attribute == flags || copies.contains(attribute)
  }
}

/// The list and the flags of one object.
struct ObjectSecurity {
  let fd: FD
  let doors: SecurityDoors

  /// Larger than any value that is kept there.
  private static let largest = 1 << 16

  /// The list, or nil if there is none.
  func list() throws(CommandFailure) -> AccessControlList? {
    let bytes: [UInt8]
    do throws(Errno) {
      guard let value = try fd.attributeValue(doors.list, limit: Self.largest) else { return nil }
      bytes = value
    } catch {
      // So says the mount of a list that it can't read.
      throw error == .EIO ? .damagedList("it can't be read") : failure(error)
    }
    do throws(MalformedList) {
      // The rethrowing call knows no typed errors; a buffer of our own does.
      let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 8)
      defer { buffer.deallocate() }
      buffer.copyBytes(from: bytes)
      return try AccessControlList(filesec: UnsafeRawBufferPointer(buffer))
    } catch {
      throw .damagedList(error.words)
    }
  }

  func setList(_ list: AccessControlList?) throws(CommandFailure) {
    if let list {
      try write(list.filesec, to: doors.list)
    } else {
      try remove(doors.list)
    }
  }

  func flags() throws(CommandFailure) -> FileFlags {
    let bytes: [UInt8]?
    do throws(Errno) {
      bytes = try fd.attributeValue(doors.flags, limit: Self.largest)
    } catch {
      throw failure(error)
    }
    let words = String(decoding: bytes ?? [], as: UTF8.self)
    guard let flags = FileFlags(words: words) else {
      throw CommandFailure(.failed, "its flags are '\(words)', which another version may understand")
    }
    return flags
  }

  func setFlags(_ flags: FileFlags) throws(CommandFailure) {
    try write(Array(flags.words.utf8), to: doors.flags)
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
  fileprivate static func damagedList(_ why: String) -> CommandFailure {
    CommandFailure(
      .failed,
      "its access control list is damaged (\(why)), and nobody but root gets at the file; by root "
        + "or the owner, 'insula acl -N' removes the list, 'insula acl -E' replaces it")
  }

  fileprivate static let symlinkHasNone = CommandFailure(.failed, "a symbolic link has none; its target may")
  fileprivate static let notOurs = CommandFailure(
    .failed, "is not on an insula mount, so it has neither access control list nor flags of insula's")

  /// Whether nothing is wrong but that there is no such thing.
  var meansNotOurs: Bool { self == .symlinkHasNone || self == .notOurs }
}

extension MalformedList {
  /// For messages.
  var words: String {
    switch self {
    case .malformed(let words), .inexpressible(let words): words
    case .tooManyEntries: "it has more than \(AccessControlList.maximumCount) entries"
    }
  }
}

extension FD {
  /// The value of an attribute, or nil if there is none.
  func attributeValue(_ name: String, limit: Int) throws(Errno) -> [UInt8]? {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: limit, alignment: 8)
    defer { buffer.deallocate() }
    do throws(Errno) {
      let count = try name.withName { (name) throws(Errno) in try attribute(name.bytes, into: buffer) }
      return Array(buffer[..<count])
    } catch {
      guard error == .ENODATA else { throw error }
      return nil
    }
  }

  /// The names of all attributes, those that are not UTF-8 with replacements.
  func attributeNames() throws(Errno) -> [String] {
    // The most that the kernel gives.
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 8)
    defer { buffer.deallocate() }
    let count = try attributeNames(into: buffer)
    return buffer[..<count].split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
  }
}

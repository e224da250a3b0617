// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO
package import Policy

/// How a command gets at ACLs and flags: in the store itself, through the mount while a daemon has it, or in
/// a package that may lie anywhere.
package enum SecurityAccess: Sendable {
  case store(Metadata)
  case mount
  /// As attributes that files have everywhere: the ACL in Apple's form, under Apple's name, and the flags as
  /// words.
  ///
  /// On an insula mount the former is the ACL itself.
  case package

  private var aclName: String {
    if case .package = self { "user.com.apple.system.Security" } else { "system.insula.acl" }
  }
  private var flagsName: String {
    if case .package = self { "user.org.insula.flags" } else { "system.insula.flags" }
  }

  /// Whether the filesystem of an object keeps what stands beside a mode.
  package func isKept(by object: FD) -> Bool {
    do throws(Errno) {
      _ = try value(keptName, of: object, orThrowing: .EOPNOTSUPP)
      return true
    } catch {
      return error != .EOPNOTSUPP
    }
  }

  private var keptName: String {
    if case .store(let metadata) = self { return "\(metadata.aclName)" }
    return aclName
  }

  /// The ACL; EIO if there is one that can't be read.
  package func acl(of object: FD) throws(Errno) -> AccessControlList? {
    if case .store(let metadata) = self {
      switch try metadata.security(of: object).acl {
      case .none: return nil
      case .acl(let acl): return acl
      case .damaged: throw .EIO
      }
    }
    guard let bytes = try value(aclName, of: object) else { return nil }
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: max(bytes.count, 1), alignment: 8)
    defer { room.deallocate() }
    room.copyBytes(from: bytes)
    do throws(MalformedACL) {
      return try AccessControlList(filesec: UnsafeRawBufferPointer(rebasing: room[..<bytes.count]))
    } catch {
      throw .EIO
    }
  }

  /// Whose file an ACL says that it belongs to, as in a backup; nil if it does not say.
  package func aclOwner(of object: FD) throws(Errno) -> Principal? {
    guard let bytes = try value(aclName, of: object) else { return nil }
    return bytes.withUnsafeBytes { AccessControlList.owner(inFilesec: $0) }
  }

  /// The flags; EIO if they can't be read.
  package func flags(of object: FD) throws(Errno) -> FileFlags {
    if case .store(let metadata) = self {
      guard try !metadata.damage(of: object).flags else { throw .EIO }
      return try metadata.security(of: object).flags
    }
    guard let bytes = try value(flagsName, of: object) else { return [] }
    guard let flags = FileFlags(words: String(decoding: bytes, as: UTF8.self)) else { throw .EIO }
    return flags
  }

  private func value(
    _ name: String, of object: FD, orThrowing unknown: Errno? = nil
  ) throws(Errno) -> [UInt8]? {
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 8)
    defer { room.deallocate() }
    do throws(Errno) {
      let count = try name.withName { (name) throws(Errno) in try object.attribute(name.bytes, into: room) }
      return Array(room[..<count])
    } catch {
      guard error != unknown, error == .ENODATA || error == .EOPNOTSUPP else { throw error }
      return nil
    }
  }

  package func setACL(_ acl: AccessControlList?, on object: FD) throws(Errno) {
    guard case .store(let metadata) = self else {
      return try set(aclName, to: acl?.filesec, on: object)
    }
    try metadata.setACL(acl, on: object)
  }

  package func setFlags(_ flags: FileFlags, on object: FD) throws(Errno) {
    guard case .store(let metadata) = self else {
      let isPackage = if case .package = self { true } else { false }
      return try set(flagsName, to: isPackage && flags.isEmpty ? nil : Array(flags.words.utf8), on: object)
    }
    try metadata.setFlags(flags, on: object)
  }

  /// Gives something new its ACL and flags.
  ///
  /// Where the filesystem below keeps no attributes, nothing has an ACL.
  package func give(_ acl: AccessControlList, _ flags: FileFlags = [], to object: FD) throws(Errno) {
    do throws(Errno) {
      if !acl.entries.isEmpty { try setACL(acl, on: object) }
      if !flags.isEmpty { try setFlags(flags, on: object) }
    } catch .EOPNOTSUPP {
      return
    }
  }

  /// Takes the ACL and the flags away, as far as that can be done: what follows says what is still in the
  /// way.
  package func clear(_ object: FD) {
    // The flags first: they stand against a change of the ACL.
    try? setFlags([], on: object)
    try? setACL(nil, on: object)
  }

  /// Whether a directory is a user's, and nobody else but root may give or take names there.
  package func isAlone(_ directory: FD, of user: UInt32) throws(Errno) -> Bool {
    let status = try directory.status()
    guard status.st_uid == user, status.permissions & 0o022 == 0 else { return false }
    return try acl(of: directory)?.entries.allSatisfy { $0.kind == .deny } ?? true
  }

  /// Takes ACLs and flags away from a whole tree.
  ///
  /// Throws ENOTEMPTY where somebody keeps making things in it. Each directory is entered once, so that
  /// whoever moves directories about does not lead us in a circle.
  func clearTree(_ name: some NameText, in parent: FD) throws(Errno) {
    try clearTree(name, in: parent) { clear($0) }
  }

  /// The same with another way to clear an object.
  func clearTree(_ name: some NameText, in parent: FD, clearing clear: (FD) -> Void) throws(Errno) {
    let top = try parent.child(name)
    let status = try top.fd.status()
    clear(top.fd)
    guard status.isDirectory else { return }
    var growth = TreeGrowth()
    var entered: Set<UInt64> = [UInt64(status.st_ino)]
    let root = try parent.openDirectory(name)
    do throws(Errno) {
      try DeepWalk.through(root.fd) { (entry) throws(Errno) in
        guard let object = try? entry.directory.child(entry.name), let status = try? object.fd.status() else {
          return false
        }
        // Before clearing changes it; a file with two names may have been cleared by the other one.
        if status.isDirectory || status.st_nlink == 1 { try growth.count(object.fd) }
        clear(object.fd)
        return status.isDirectory && entered.insert(UInt64(status.st_ino)).inserted
      }
    } catch .ENOTEMPTY {
      throw .ENOTEMPTY
    } catch {
      // What can't be looked at stays as it is, and the removal says so.
    }
  }

  /// Removes something with all that is in it, be it protected by ACLs and flags, as a mount enforces them.
  package func removeTree(_ name: some NameText, in parent: FD) throws(Errno) {
    do throws(Errno) {
      try parent.removeTree(name)
    } catch .EACCES, .EPERM {
      try clearTree(name, in: parent)
      try parent.removeTree(name)
    }
  }

  /// The same as ``LinuxIO/FD/remove(held:named:by:)``, be it protected so.
  package func remove(
    held directory: FD?, named name: some NameText, in parent: FD
  ) throws(Errno) {
    func attempt() throws(Errno) {
      try parent.remove(held: directory, named: name) { (name, parent) throws(Errno) in
        try removeTree(name, in: parent)
      }
    }
    do throws(Errno) { try attempt() } catch .EACCES, .EPERM {
      if let directory {
        clear(directory)
      } else {
        let object = try parent.child(name)
        clear(object.fd)
      }
      try attempt()
    }
  }

  private func set(_ name: String, to value: [UInt8]?, on object: FD) throws(Errno) {
    try name.withName { (name) throws(Errno) in
      guard let value else {
        do throws(Errno) { return try object.removeAttribute(name.bytes) } catch .ENODATA { return }
      }
      let room = UnsafeMutableRawBufferPointer.allocate(byteCount: value.count, alignment: 8)
      defer { room.deallocate() }
      room.copyBytes(from: value)
      try object.setAttribute(name.bytes, to: UnsafeRawBufferPointer(room), flags: 0)
    }
  }
}

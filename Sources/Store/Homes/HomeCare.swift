// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO
internal import Policy

/// Something of a home's standard directories that is not as its owner needs it.
package struct HomeFault: Equatable, Sendable {
  package enum Kind: Equatable, Sendable {
    case missing
    /// Something else has its name: what, in words.
    case notADirectory(what: String)
    /// It belongs to nobody who is there, or is empty.
    case owner(UInt32)
    /// It is somebody else's, and something is in it.
    case othersDirectory(UInt32)
    /// Its owner can't use it, or everyone may write there.
    case mode(UInt32)
    /// Its ACL lacks entries of a new one's.
    case acl
    /// Its ACL or its flags can't be read.
    case unreadable
  }

  /// Below the home; empty for the home itself.
  package let path: String
  package let kind: Kind

  package var isMendable: Bool {
    switch kind {
    case .notADirectory, .othersDirectory: false
    default: true
    }
  }
}

/// Sees to the standard directories of a home; what its owner may have chosen stays.
///
/// An owner may open or close a directory to others, change its ACL and its flags: a mode is wrong only where
/// its owner can't use the directory, or where it lets everyone write whom a new one would not let. Of an
/// ACL only what a new one has is looked for.
final class HomeCare: Sendable {
  private let directory: OwnedFD
  private let uid: UInt32
  private let gid: UInt32
  private let former: UInt32?
  private let owners: Set<UInt32>?
  private let access: SecurityAccess

  private var home: FD { directory.fd }

  /// `home` is open; the ids are those of its owner, or of who is about to be.
  ///
  /// What belongs to its `former` owner goes with it. `owners` have homes of the store; nil if that is not
  /// known, and then nobody counts as gone.
  init(
    _ home: consuming OwnedFD, uid: UInt32, gid: UInt32, former: UInt32? = nil, owners: Set<UInt32>?,
    access: SecurityAccess
  ) {
    directory = home
    self.uid = uid
    self.gid = gid
    self.former = former
    self.owners = owners
    self.access = access
  }

  private struct Expected {
    let path: String
    let mode: UInt32
    let acl: AccessControlList
    let flags: FileFlags
    var isLocalized = false
  }

  /// Parents before children, the home itself last.
  private var expected: [Expected] {
    HomeDirectory.all.map {
      Expected(
        path: $0.path, mode: $0.mode, acl: $0.acl(owner: uid), flags: $0.flags, isLocalized: $0.isLocalized)
    }
      + [Expected(path: "", mode: HomeDirectory.homeMode, acl: HomeDirectory.staying, flags: [])]
  }

  // MARK: Finding

  /// What is wrong, in the order in which it is to be mended.
  func faults() -> [HomeFault] {
    let keepsAttributes = access.isKept(by: home)
    return expected.flatMap { faults(of: $0, keepsAttributes) }
  }

  private func faults(of expected: Expected, _ keepsAttributes: Bool) -> [HomeFault] {
    do throws(Errno) {
      let object = try named(expected.path)
      return try kinds(of: object.fd, expected, keepsAttributes).map {
        HomeFault(path: expected.path, kind: $0)
      }
    } catch .ENOENT {
      return [HomeFault(path: expected.path, kind: .missing)]
    } catch {
      // What is in its parent's place, or mounted there, was found already.
      return []
    }
  }

  private func kinds(
    of object: FD, _ expected: Expected, _ keepsAttributes: Bool
  ) throws(Errno) -> [HomeFault.Kind] {
    let status = try object.status()
    guard status.isDirectory else { return [.notADirectory(what: status.kindWords)] }
    var kinds: [HomeFault.Kind] = []
    if status.st_uid != uid {
      guard try mayTake(object, status, expected) else { return [.othersDirectory(status.st_uid)] }
      kinds.append(.owner(status.st_uid))
    }
    if Self.mended(status.permissions, expected.mode) != status.permissions {
      kinds.append(.mode(status.permissions))
    }
    if keepsAttributes, let kind = securityFault(of: object, expected) { kinds.append(kind) }
    return kinds
  }

  /// Whether a directory of another owner may become the home's owner's.
  ///
  /// They can put any directory in a home under a standard name, also one that is closed to them: to rename
  /// something takes no right to it.
  private func mayTake(_ object: FD, _ status: FileStatus, _ expected: Expected) throws(Errno) -> Bool {
    // Nobody but root gives a home its name.
    if expected.path.isEmpty { return true }
    // Additional IDs are the account's that has them.
    let owner = SubordinateUsers.ofThisMachine.account(of: status.st_uid)
    if owner == uid || owner == former { return true }
    if owner == status.st_uid, isGone(owner) { return true }
    let listing = try object.reopened(O_RDONLY | O_DIRECTORY)
    return try listing.fd.firstEntry { name, _ in
      !name.buffer.elementsEqual(DisplayName.marker.utf8)
    } == nil
  }

  /// Whether a number is certain to be nobody's.
  private func isGone(_ owner: UInt32) -> Bool {
    guard owner != 0, let owners, !owners.contains(owner) else { return false }
    do throws(Errno) { return try Account.numbered(ifCertain: owner) == nil } catch { return false }
  }

  private func securityFault(of object: FD, _ expected: Expected) -> HomeFault.Kind? {
    do throws(Errno) {
      _ = try access.flags(of: object)
      let acl = try access.acl(of: object)
      return missing(in: acl, expected).isEmpty ? nil : .acl
    } catch {
      return error == .EIO ? .unreadable : nil
    }
  }

  /// Entries that a new one's ACL has and this one has not, nor one that says more.
  private func missing(in acl: AccessControlList?, _ expected: Expected) -> [AccessControlEntry] {
    expected.acl.entries.filter { wanted in
      acl?.entries.contains {
        $0.kind == wanted.kind && $0.principal == wanted.principal && $0.rights.isSuperset(of: wanted.rights)
          && $0.inheritance.isSuperset(of: wanted.inheritance) && !$0.inheritance.contains(.onlyInherit)
      } != true
    }
  }

  /// A mode with which its owner can use a directory, and not everyone write who could not at its beginning.
  static func mended(_ mode: UInt32, _ new: UInt32) -> UInt32 { (mode | 0o700) & ~(0o002 & ~new) }

  /// An object that must be there, without following what has its name.
  private func named(_ path: String) throws(Errno) -> OwnedFD {
    guard !path.isEmpty else { return try home.duplicated() }
    return try home.withParent(of: path) { (parent, name) throws(Errno) in try parent.child(name) }
  }

  // MARK: Mending

  /// Puts right what was found; nothing that is there is lost.
  func mend(_ fault: HomeFault) throws(Errno) {
    guard let expected = expected.first(where: { $0.path == fault.path }) else { throw .EINVAL }
    if fault.kind == .missing { return try make(expected) }
    let object = try named(expected.path)
    // Whatever has come to its name meanwhile, only a directory is touched.
    let status = try object.fd.status()
    guard status.isDirectory else { throw .ENOTDIR }
    switch fault.kind {
    case .missing, .notADirectory, .othersDirectory: throw .EEXIST
    case .owner:
      guard try mayTake(object.fd, status, expected) else { throw .EPERM }
      try object.fd.changeOwner(uid: uid, gid: gid)
    case .mode: try object.fd.changeMode(Self.mended(status.permissions, expected.mode))
    case .acl: try completeACL(of: object.fd, expected)
    case .unreadable:
      try access.setFlags(expected.flags, on: object.fd)
      try access.setACL(expected.acl.entries.isEmpty ? nil : expected.acl, on: object.fd)
    }
  }

  private func make(_ expected: Expected) throws(Errno) {
    try home.withParent(of: expected.path) { (parent, name) throws(Errno) in
      try parent.makeDirectory(name, mode: 0o700)
      let made = try parent.child(name)
      let status = try made.fd.status()
      guard status.isDirectory, status.st_uid == ProcessID.user else { throw .EEXIST }
      if expected.isLocalized {
        let directory = try parent.openDirectory(name)
        try StoreLayout.mark(directory.fd, uid: uid, gid: gid)
      }
      try access.give(expected.acl, expected.flags, to: made.fd)
      try made.fd.changeOwner(uid: uid, gid: gid)
      try made.fd.changeMode(expected.mode)
    }
  }

  private func completeACL(of object: FD, _ expected: Expected) throws(Errno) {
    let acl = try access.acl(of: object)
    let entries = missing(in: acl, expected)
    // Attributes were lost as a whole, as by a copy without them.
    if acl == nil, !expected.flags.isEmpty {
      try access.setFlags(access.flags(of: object).union(expected.flags), on: object)
    }
    let edit: ACLEdit = acl?.isCanonical == false ? .insert(entries, at: 0) : .add(entries)
    // It may be as long already as an ACL can be.
    guard let completed = try? edit.applied(to: acl) else { throw .E2BIG }
    try access.setACL(completed, on: object)
  }
}

extension FileStatus {
  /// What it is, in words that follow "is".
  package var kindWords: String {
    switch st_mode & S_IFMT {
    case S_IFDIR: "a directory"
    case S_IFREG: "a file"
    case S_IFLNK: "a symbolic link"
    case S_IFIFO: "a fifo"
    case S_IFSOCK: "a socket"
    case S_IFCHR, S_IFBLK: "a device node"
    default: "no directory"
    }
  }
}

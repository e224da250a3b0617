// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// What others had in somebody's home: a backup must not give it to the home's owner.
///
/// What others keep to themselves may be open by its own mode, and closed by a directory of theirs alone. A
/// program that backs up goes by paths, and the owner of a home can give another directory's name to that one
/// meanwhile. So no directory in a backup says who could read a file: only its owner does, and its own ACL,
/// as in a Drop Box.
struct OthersFiles {
  private(set) var removed = Sample()
  private(set) var acls = ForeignACLs()
  private let owner: CallerIdentity

  /// Takes it out of what was brought back of a home and its apps, which nobody else can reach.
  ///
  /// In the same walk ACLs of other files go, and `keep` gets each file, directory and link of the home that
  /// stays; other things have no contents.
  init(
    removedFrom backup: RestoredBackup, home: String,
    keeping keep: (FD, FileStatus) throws(Errno) -> Void = { (_, _) throws(Errno) in }
  ) throws(Errno) {
    let place = Self.place(ofHome: home)
    let status = try? backup.tree.fd.status(at: place)
    // A home that is not there is nobody's.
    let (uid, gid) = (status?.st_uid ?? 0, status?.st_gid ?? 0)
    owner = CallerIdentity(uid: uid, gid: gid, groups: Account.numbered(uid)?.groups ?? [])
    if status != nil {
      let top = try backup.tree.fd.openDirectory(at: place)
      try removeFiles(from: top.fd, place, keep)
    }
    try removeBundles(from: backup.directory.fd)
  }

  static func place(ofHome home: String) -> String { "Users/\(home)" }

  private mutating func removeFiles(
    from top: FD, _ place: String, _ keep: (FD, FileStatus) throws(Errno) -> Void
  ) throws(Errno) {
    let above = place.utf8.split { $0 == UInt8(ascii: "/") }.map { Array($0) }
    let status = try top.status()
    try acls.remove(from: top, status, at: above)
    try keep(top, status)
    var pending: [[[UInt8]]] = [[]]
    var others: [(path: [[UInt8]], user: UInt32)] = []
    func words(_ path: [[UInt8]], _ user: UInt32) -> String {
      let names = path.map { String(decoding: $0, as: UTF8.self) }
      return "/\(place)/\(names.joined(separator: "/")) (uid \(user))"
    }
    while let path = pending.popLast() {
      let directory = try top.openDirectory(at: path)
      for entry in try directory.fd.entries() {
        let child = try directory.fd.child(entry.name)
        let status = try child.fd.status()
        guard status.isDirectory || status.isRegular || status.isSymlink else {
          try directory.fd.remove(entry.name, directory: false)
          continue
        }
        let inside = path + [entry.name]
        try acls.remove(from: child.fd, status, at: above + inside)
        let isOwn = isOwners(status)
        let isLeftOut = isOwn ? false : try isPrivate(child.fd, status)
        if isLeftOut {
          removed.add(words(inside, status.st_uid))
          try directory.fd.removeTree(entry.name)
          continue
        }
        try keep(child.fd, status)
        guard status.isDirectory else { continue }
        pending.append(inside)
        if !isOwn { others.append((inside, status.st_uid)) }
      }
    }
    // Of others' directories only those are left that lead to something; a directory comes after those in it.
    for (path, user) in others.reversed() {
      guard let name = path.last else { continue }
      let parent = try top.openDirectory(at: path.dropLast())
      do throws(Errno) { try parent.fd.remove(name, directory: true) } catch {
        if error == .ENOTEMPTY || error == .EEXIST { continue }
        throw error
      }
      removed.add(words(path, user))
    }
  }

  /// Whether it is the owner's of the home; additional IDs are the account's that has them.
  private func isOwners(_ status: FileStatus) -> Bool {
    status.st_uid == owner.uid || SubordinateUsers.ofThisMachine.account(of: status.st_uid) == owner.uid
  }

  /// Whether something of others' is not, by itself, for the home's owner.
  private func isPrivate(_ object: FD, _ status: FileStatus) throws(Errno) -> Bool {
    if status.isSymlink { return true }
    let acl: AccessControl
    do throws(Errno) {
      acl = try SecurityAccess.package.acl(of: object).map { .acl($0) } ?? .none
    } catch {
      acl = .damaged
    }
    if !status.isDirectory {
      guard case .acl(let list) = acl, list.names(owner.uid) else { return true }
    }
    let judged = Object(
      uid: status.st_uid, gid: status.st_gid, mode: status.permissions,
      kind: status.isDirectory ? .directory : .file, zone: .user, acl: acl)
    let needed: [Rights] = status.isDirectory ? [.list, .search] : [.read]
    return needed.contains {
      decide($0, on: judged, by: owner.credentials, isMember: owner.membership) != .allow
    }
  }

  /// Takes out bundles that have something of others': what was installed is its domain's, or root's and open
  /// to all.
  private mutating func removeBundles(from backup: FD) throws(Errno) {
    let bundles: OwnedFD
    do throws(Errno) { bundles = try backup.openDirectory(BackupManifest.bundlesName) } catch {
      if error == .ENOENT { return }
      throw error
    }
    func isBundles(_ status: FileStatus) -> Bool {
      let needed: FileMode = status.isDirectory ? 0o5 : 0o4
      return isOwners(status) || status.st_uid == 0 && status.permissions & needed == needed
    }
    for entry in try bundles.fd.entries() {
      var isWhole = isBundles(try bundles.fd.status(of: entry.name))
      if isWhole, let bundle = try? bundles.fd.openDirectory(entry.name) {
        try DeepWalk.through(bundle.fd) { (entry) throws(Errno) in
          let status = try entry.directory.status(of: entry.name)
          if !isBundles(status) { isWhole = false }
          return isWhole && status.isDirectory
        }
      }
      guard !isWhole else { continue }
      removed.add("the app \(String(decoding: entry.name, as: UTF8.self))")
      try bundles.fd.removeTree(entry.name)
    }
  }
}

extension AccessControlList {
  /// Whether it says itself that a user may read the object.
  fileprivate func names(_ user: UInt32) -> Bool {
    entries.contains {
      $0.kind == .permit && $0.principal == .user(user) && $0.rights.contains(.read)
        && !$0.inheritance.contains(.onlyInherit)
    }
  }
}

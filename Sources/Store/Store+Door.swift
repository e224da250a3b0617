// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
package import Policy

/// What is wrong with one directory on the way to a store.
package struct StoreDoorFinding: Equatable, Sendable {
  package let path: String
  package let problem: StoreDoorProblem
  /// Whether it is the store itself.
  package let isStore: Bool
  /// The store's own path, if that does not lead through the directory: only the path that was given does.
  var ownPath: String?

  /// Whether `insula check --repair` can mend it.
  var isMendable: Bool { isStore && (problem == .open || problem == .writable) }

  /// What is said of the directory.
  package var words: String {
    switch problem {
    case .open: "lets other users reach the files in it, past all ACLs, flags and seals"
    case .writable: "lets other users put another store in this one's place"
    case .foreign(let uid):
      "belongs to \(Account.numbered(uid)?.name ?? "uid \(uid)"), "
        + "who can put another store in this one's place"
    }
  }

  /// What to do about it.
  package var advice: String {
    if let ownPath { return "if you mean \(ownPath), name it so" }
    return switch problem {
    case .open: "run 'chmod 700 \(path)'"
    case .writable: isStore ? "run 'chmod 700 \(path)'" : "run 'chmod go-w \(path)', or move the store"
    case .foreign: "move it to a directory of root's or of its owner's"
    }
  }
}

extension Store {
  /// What is wrong with the store's own directory, and with those that lead to it.
  package var doorFindings: [StoreDoorFinding] { Self.doorFindings(of: directory, at: path, named: named) }

  /// `named` is the path as a person gave it: whoever may rename a link in that decides which store is meant.
  static func doorFindings(of store: FD, at path: String, named: String) -> [StoreDoorFinding] {
    let user = ProcessID.user
    var found: [StoreDoorFinding] = []
    if let status = try? store.status(), let problem = door(status, store).problemOfStore(for: user) {
      found.append(StoreDoorFinding(path: path, problem: problem, isStore: true))
    }
    return found + wayFindings(to: named, path: path, for: user)
  }

  /// What is wrong, for `user`, with the directories that lead to a store or its mount: by the path that a
  /// person gave, and by the one that this leads to.
  ///
  /// The mount is not asked anything.
  package static func wayFindings(
    to named: String, path: String? = nil, for user: UInt32 = ProcessID.user
  ) -> [StoreDoorFinding] {
    let own = realPath(path ?? named) ?? path
    var found: [StoreDoorFinding] = []
    var seen: Set<ExactText> = []
    for path in [own, named].compactMap({ $0 }) {
      let isOwn = own.map(path.hasSameBytes) ?? false
      // What can't be walked does not lead there.
      _ = try? PathWalk.open(withoutEnd(path)) { (step) throws(Errno) in
        let (object, status) =
          switch step {
          case .directory(let directory, let status): (directory, status)
          case .link(let link, let status): (link, status)
          }
        let place = String(decoding: try object.ownPath(), as: UTF8.self)
        guard seen.insert(ExactText(place)).inserted, !ProcessID.isUnmapped(status.st_uid),
          let problem = problem(of: object, status, for: user)
        else { return }
        found.append(
          StoreDoorFinding(path: place, problem: problem, isStore: false, ownPath: isOwn ? nil : own))
      }
    }
    return found
  }

  /// Whoever has made a link may put another one in its place, also where they may rename nothing else.
  private static func problem(of object: FD, _ status: FileStatus, for user: UInt32) -> StoreDoorProblem? {
    guard status.isSymlink else { return door(status, object).problemAbove(for: user) }
    return [0, user].contains(status.st_uid) ? nil : .foreign(status.st_uid)
  }

  /// A slash at the end would have the last directory asked what it is, and that may be a mount.
  private static func withoutEnd(_ path: String) -> String {
    var path = path
    while path.count > 1, path.ends(with: "/") { path.removeLast() }
    return path
  }

  private static func door(_ status: FileStatus, _ directory: FD) -> StoreDoor {
    // Nobody is looked up where that makes no difference: accounts may lie on a server.
    guard status.permissions & 0o020 != 0 else {
      return StoreDoor(mode: UInt32(status.permissions), uid: status.st_uid, hasPrivateGroup: true)
    }
    // With a POSIX ACL, the group's bits are what any of those may have whom the ACL names.
    let hasACL = (try? directory.attribute("system.posix_acl_access", limit: 1 << 16)) != nil
    return StoreDoor(
      mode: UInt32(status.permissions), uid: status.st_uid,
      hasPrivateGroup: !hasACL && isPrivate(status.st_gid, to: status.st_uid))
  }

  /// Whether nobody but a user and root is in a group.
  ///
  /// Many distributions give each user a group of that name, and a umask that lets it write. Nobody but root
  /// is in root's, unless somebody was put there.
  private static func isPrivate(_ gid: UInt32, to uid: UInt32) -> Bool {
    guard let group = AccountGroup.numbered(gid) else { return gid == 0 }
    let owner = Account.numbered(uid)?.name
    func isOwner(_ name: String) -> Bool { owner.map { name.hasSameBytes(as: $0) } ?? false }
    return (gid == 0 || isOwner(group.name)) && group.members.allSatisfy { isOwner($0) || $0 == "root" }
  }
}

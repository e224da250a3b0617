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
    switch problem {
    case .open: "run 'chmod 700 \(path)'"
    case .writable: isStore ? "run 'chmod 700 \(path)'" : "run 'chmod go-w \(path)', or move the store"
    case .foreign: "move the store to a directory of root's or of its owner's"
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
    var seen: Set<String> = []
    for path in [named, realPath(path) ?? path] {
      // What can't be walked does not lead there.
      _ = try? PathWalk.open(path) { (step) throws(Errno) in
        guard case .directory(let directory, let status) = step else { return }
        let place = String(decoding: try directory.ownPath(), as: UTF8.self)
        guard seen.insert(place).inserted, !ProcessID.isUnmapped(status.st_uid),
          let problem = door(status, directory).problemAbove(for: user)
        else { return }
        found.append(StoreDoorFinding(path: place, problem: problem, isStore: false))
      }
    }
    return found
  }

  private static func door(_ status: FileStatus, _ directory: FD) -> StoreDoor {
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

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
  package var doorFindings: [StoreDoorFinding] { Self.doorFindings(of: directory, at: path) }

  static func doorFindings(of store: FD, at path: String) -> [StoreDoorFinding] {
    let user = ProcessID.user
    var found: [StoreDoorFinding] = []
    if let status = try? store.status(), let problem = door(status, path).problemOfStore(for: user) {
      found.append(StoreDoorFinding(path: path, problem: problem, isStore: true))
    }
    for place in directories(above: path) {
      guard let status = try? FD.cwd.status(of: place), !isUnmapped(status.st_uid),
        let problem = door(status, place).problemAbove(for: user)
      else { continue }
      found.append(StoreDoorFinding(path: place, problem: problem, isStore: false))
    }
    return found
  }

  /// The real directories in which the names of a path are, and those that lead to where it ends: whoever may
  /// rename a link in the path decides which store is meant.
  private static func directories(above path: String) -> [String] {
    func above(_ path: String) -> [String] {
      let names = path.split(separator: "/").dropLast()
      return (0...names.count).map { "/" + names.prefix($0).joined(separator: "/") }
    }
    var found: [String] = []
    let named = path.hasPrefix("/") ? above(path).compactMap(realPath) : []
    let real = realPath(path).map(above) ?? []
    for place in named + real where !found.contains(place) { found.append(place) }
    return found
  }

  private static func door(_ status: FileStatus, _ path: String) -> StoreDoor {
    let group = status.st_gid
    // Many distributions give each user a group of that name, and a umask that lets it write.
    let isOwn = AccountGroup.numbered(group).map { $0.name == Account.numbered(status.st_uid)?.name } ?? false
    return StoreDoor(
      mode: UInt32(status.permissions), uid: status.st_uid,
      hasPrivateGroup: !hasACL(path) && (group == 0 || isOwn))
  }

  /// With a POSIX ACL, the group's bits are what any of those may have whom the ACL names.
  private static func hasACL(_ path: String) -> Bool {
    guard let directory = try? FD.cwd.openFollowing(path, pathOnly | O_DIRECTORY) else { return false }
    let fd = directory.fd
    return (try? fd.attribute("system.posix_acl_access", limit: 1 << 16)) != nil
  }

  /// Whether it is somebody outside of this user namespace, as root of the machine is in a container.
  private static func isUnmapped(_ uid: UInt32) -> Bool {
    uid == 65_534 && FD.text(of: "/proc/self/uid_map", limit: 4096)?.contains("4294967295") == false
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
internal import Store

/// What others had in somebody's home and kept to themselves, as a Drop Box has it: a backup must not give it
/// to the home's owner.
struct OthersFiles {
  private(set) var removed = Sample()

  /// Takes it out of what was brought back of a home, which nobody else can reach.
  ///
  /// What its owner may read stays.
  init(removedFrom tree: FD, home: String) throws(Errno) {
    let place = "Users/\(home)"
    let top: OwnedFD
    do throws(Errno) { top = try tree.openDirectory(at: place) } catch {
      if error == .ENOENT { return }
      throw error
    }
    let status = try top.fd.status()
    let groups = Account.numbered(status.st_uid)?.groups ?? []
    let owner = CallerIdentity(uid: status.st_uid, gid: status.st_gid, groups: groups)
    var pending: [[[UInt8]]] = [[]]
    while let path = pending.popLast() {
      let directory = try top.fd.openDirectory(at: path)
      for entry in try directory.fd.entries() {
        let child = try directory.fd.child(entry.name)
        let status = try child.fd.status()
        if try Self.isPrivate(child.fd, status, from: owner) {
          let names = (path + [entry.name]).map { String(decoding: $0, as: UTF8.self) }
          removed.add("/\(place)/\(names.joined(separator: "/")) (uid \(status.st_uid))")
          try directory.fd.removeTree(entry.name)
        } else if status.isDirectory {
          pending.append(path + [entry.name])
        }
      }
    }
  }

  private static func isPrivate(
    _ object: FD, _ status: FileStatus, from owner: CallerIdentity
  ) throws(Errno) -> Bool {
    // Additional IDs are the account's that has them.
    if SubordinateUsers.ofThisMachine.account(of: status.st_uid) == owner.uid || status.isSymlink {
      return false
    }
    let acl: AccessControl
    do throws(Errno) {
      acl = try SecurityAccess.package.acl(of: object).map { .acl($0) } ?? .none
    } catch {
      acl = .damaged
    }
    let judged = Object(
      uid: status.st_uid, gid: status.st_gid, mode: status.permissions,
      kind: status.isDirectory ? .directory : .file, zone: .user, acl: acl)
    let needed: [Rights] = status.isDirectory ? [.list, .search] : [.read]
    return needed.contains {
      decide($0, on: judged, by: owner.credentials, isMember: owner.membership) != .allow
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy

// Before an account gets a home, what its number has in the trash and among the removed containers may be
// somebody else's. Nobody can be certain, so none of it is deleted: it is moved to a directory beside the
// tree that root alone reaches, and root is told. Whoever is stopped in between goes on the next time.

extension Containers {
  /// Moves what a user has thrown away, and their removed containers, to where root finds them; gives what
  /// was moved, by paths below the store.
  ///
  /// What is known to be from a home that is not there waits for that one, and is seen by nobody until then.
  /// Where the home is not known, what lies beside it stays there, and is nobody's removed container any
  /// more.
  package func setAside(of user: UInt32) throws(StoreError) -> [LeftBehind] {
    let homes = try RemovedHomes(store, registry)
    let removed = try registry.removedContainers(of: user).filter {
      !$0.isBeingDeleted && ($0.home == nil || homes.home(of: $0) != nil)
    }
    let hasTrash = tree.fd.hasTrash(of: user)
    guard hasTrash || !removed.isEmpty else { return [] }
    let name = "\(user)-\(UUIDText.random())"
    let place = "\(StoreLayout.formerPath)/\(name)"
    let aside = try store.makeFormer(name)
    var moved: [LeftBehind] = []
    if hasTrash, try takeTrash(of: user, to: aside.fd, as: "trash") {
      moved.append(LeftBehind(path: "\(place)/trash", reason: "what uid \(user) has thrown away"))
    }
    for container in removed {
      let uuid = container.container.uuid
      if try setAside(container, in: aside.fd) {
        let reason = "what was removed from \(container.container.path)"
        moved.append(LeftBehind(path: "\(place)/\(uuid)", reason: reason))
      }
      try registry.forget(container)
    }
    return moved
  }

  private func setAside(_ removed: RemovedContainer, in aside: FD) throws(StoreError) -> Bool {
    let held = try store.openRemoved()
    let uuid = removed.container.uuid
    return try explaining("move", "\(store.path)/\(StoreLayout.removedPath)/\(uuid)") { () throws(Errno) in
      do throws(Errno) {
        try held.fd.rename(uuid, to: aside, uuid, flags: UInt32(CLX_RENAME_NOREPLACE))
      } catch .ENOENT {
        return false
      }
      try aside.synchronize(dataOnly: false)
      return true
    }
  }

  /// Takes what a user has thrown away out of the tree, in one step; ``Store/removeLeft()`` deletes it.
  ///
  /// What lies there under the user's number and is not theirs stays.
  package func takeTrash(of user: UInt32) throws(StoreError) {
    _ = try takeTrash(of: user, to: workshop.directory, as: Store.newNameAside())
  }

  /// Takes it to another directory; false if there is none.
  private func takeTrash(of user: UInt32, to directory: FD, as name: String) throws(StoreError) -> Bool {
    let place = DomainTree.trash.path
    return try explaining("delete", "\(path)/\(place)/\(user)") { () throws(Errno) in
      do throws(Errno) {
        let trash = try tree.fd.openDirectory(at: place)
        let own = try trash.fd.child("\(user)")
        guard try own.fd.status().isDirectory(of: user) else { return false }
        // To move a directory takes the right to write in it, in a rootless store.
        try own.fd.changeMode(0o700)
        let target = Workshop(directory: directory, prefix: workshop.prefix, visibly: workshop.visibly)
        try target.take("\(user)", from: trash.fd, as: name)
        return true
      } catch .ENOENT {
        // They have never thrown anything away, or the store is of an earlier version.
        return false
      }
    }
  }
}

extension FD {
  fileprivate func hasTrash(of user: UInt32) -> Bool {
    (try? status(at: "\(DomainTree.trash.path)/\(user)"))?.isDirectory(of: user) == true
  }
}

extension FileStatus {
  fileprivate func isDirectory(of user: UInt32) -> Bool { isDirectory && st_uid == user }
}

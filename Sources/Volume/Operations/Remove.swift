// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Fuse
internal import Glibc
package import LinuxIO
internal import Policy

// Removing names.

extension View {
  package func remove(
    _ name: Name, in parent: NodeID, directory isDirectory: Bool, by caller: Caller
  ) throws(Errno) {
    let directory = try nodes.reference(to: parent)
    let change = try DirectoryChange(in: directory, of: self, for: caller.request)
    let stored = try change.stored(name)
    let name = stored.name
    if change.hasRemoved(name) {
      if let left = change.left, left.isDone == 0 { try change.commit(.gone(name, left.object)) {} }
      return
    }
    let target = try find(name, in: change.from, by: caller)
    try gate.refuseAboveReadOnlyRegion(target.status, target.object.zone)
    try gate.authorize(.delete, on: target.object, in: change.from.object, by: caller)
    let freed = openIfLarge(target, name, in: change.from)
    try change.commit(.removed(name, target, by: payer(caller))) { () throws(Errno) in
      try directory.fd.remove(name, directory: isDirectory)
    }
    if stored.isOther { forgetSpelling(of: target.number, in: change.from.number) }
    change.end()
    if let freed { giveBackRoom(of: freed, by: caller) }
  }

  /// What a name stands for.
  ///
  /// Who may not search the directory does not learn that.
  func find(
    _ name: Name, in directory: DirectoryChange.Directory, by caller: Caller
  ) throws(Errno) -> NamedObject {
    try find(name, in: directory, zone: zone(of: name, in: directory), by: caller)
  }

  /// The same for a name whose zone is known, and maybe that nothing has it.
  func find(
    _ name: Name, in directory: DirectoryChange.Directory, zone: Zone, isMissing: Bool = false,
    by caller: Caller
  ) throws(Errno) -> NamedObject {
    try gate.authorize(.search, on: directory.object, by: caller)
    try refuseShown(directory, by: caller)
    try refuseUnseen(name, in: directory.position)
    if isVolume(name, in: directory.number, directory.zone) {
      return try findVolume(name, in: directory, by: caller)
    }
    if isMissing { throw .ENOENT }
    let (status, security) = try look(at: name, in: directory)
    if directory.zone == .users, status.isSymlink { try refuseAwayHome(name, in: directory.fd) }
    var position = scope.position(of: name, in: directory.position)
    var sibling: SiblingObject?
    if directory.object.isBesideGranted {
      let object = try nodes.openWithRoom { () throws(Errno) in try directory.fd.child(name) }
      sibling = SiblingObject(Identity(try object.fd.status(), of: object.fd))
      position = scope.position(of: name, in: directory.position, object: sibling)
    }
    guard position != .nowhere else { throw .ENOENT }
    return NamedObject(
      status: status,
      object: object(status, zone: zone, reach: scope.reach(of: position), security: security),
      sibling: sibling)
  }

  /// A large file, held open: the room that it takes is released when it is closed, which may take seconds.
  func openIfLarge(
    _ target: NamedObject, _ name: Name, in directory: DirectoryChange.Directory
  ) -> OwnedFD? {
    let large = 16 << 20
    guard target.status.isRegular, target.status.st_blocks > large / 512 else { return nil }
    return try? nodes.openWithRoom { () throws(Errno) in try directory.fd.child(name) }
  }

  /// Closes a large file that has lost its name, before the answer; unless its user has something slow under
  /// way: then it is closed when it is their turn, and nobody waits.
  func giveBackRoom(of file: consuming OwnedFD, by caller: Caller) {
    let payer = payer(caller)
    let budget = volume.budget
    if volume.slow.begin(payer.user) {
      defer { volume.slow.end(payer.user) }
      try? file.close()
    } else if budget.takeQuietly(.descriptors, by: payer) {
      let file = file.release()
      volume.slow.add(payer.user, UInt64(number)) {
        try? OwnedFD(owning: file.raw).close()
        budget.give(.descriptors, by: payer)
      }
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO
package import Policy
internal import Synchronization

// Imported data takes the place of a container, and the old container becomes a removed one, by the same
// rename: the copy waits for it where removed containers are, under the number that the old one gets, whose
// row is noted before. Whoever is stopped in between leaves that row and the copy; the container is in its
// place then, and so the copy is known as one that nobody needs (``endStoppedReplacements()``).

extension Containers {
  /// Puts a copy that lies beside a container in its place; gives what the old one is as a removed container.
  ///
  /// `check` says whether the copy is fit to be a container: once it is in its place its user can't change
  /// that any more. `visibly` does what others see. What fails leaves both where they were.
  package func replace(
    _ record: ContainerRecord, by copy: String, _ identity: ObjectIdentity, in parent: FD,
    checking check: @escaping () throws(Errno) -> Void,
    visibly: (_ change: () throws(Errno) -> Void) throws(Errno) -> Void
  ) throws(StoreError) -> RemovedContainer {
    let own = try forHomeThatIsThere(record.path)
    let place = "\(path)/\(record.path)"
    try requireReplaceable(record, in: parent, at: place)
    let held = try explaining("replace", place) { () throws(Errno) in try own.openRemoved() }
    let present = try explaining("replace", place) { () throws(Errno) in
      try ObjectIdentity(of: record.path.splitAtName.name, in: parent)
    }
    let old = ContainerRecord(
      uuid: UUIDText.random(), kind: record.kind, identifier: record.identifier, user: record.user,
      path: record.path, identity: present, team: record.team)
    Self.replacing.withLock { _ = $0.insert(old.uuid) }
    defer { Self.replacing.withLock { _ = $0.remove(old.uuid) } }
    let removed = try noteRemoval(of: old)
    do throws(Errno) {
      try visibly { () throws(Errno) in try own.exchange(old, copy, identity, held.fd, parent, check) }
    } catch {
      // If the copy could not be given back, the row says that it is there.
      if !held.fd.has(old.uuid) { try? registry.forget(removed) }
      throw StoreError(error, doing: "replace", path: place)
    }
    try explaining("write to disk", place) { () throws(Errno) in
      // The name of the copy is gone as well.
      try own.workshop.visibly(parent) {}
      try held.fd.synchronize(dataOnly: false)
      try parent.synchronize(dataOnly: false)
    }
    return removed
  }

  /// Throws if flags of a container, or of the directory that it is in, stand against its removal.
  private func requireReplaceable(
    _ record: ContainerRecord, in parent: FD, at place: String
  ) throws(StoreError) {
    let container = try explaining("replace", place) { () throws(Errno) in
      try parent.openDirectory(record.path.splitAtName.name)
    }
    try requireNoFlags(against: [.delete, .deleteChild], on: container.fd, at: place)
    try requireNoFlags(against: [.deleteChild, .addSubdirectory], above: place, on: parent)
  }

  private func exchange(
    _ old: ContainerRecord, _ copy: String, _ identity: ObjectIdentity, _ held: FD, _ parent: FD,
    _ check: () throws(Errno) -> Void
  ) throws(Errno) {
    guard try ObjectIdentity(of: copy, in: parent) == identity else { throw .ESTALE }
    #if DEBUG
      Halt.at(.copyCompared)
    #endif
    try parent.rename(copy, to: held, old.uuid, flags: UInt32(CLX_RENAME_NOREPLACE))
    do throws(Errno) {
      // Until here others could give its name to something else.
      guard try ObjectIdentity(of: old.uuid, in: held) == identity else { throw .ESTALE }
      try exchange(old, held, parent, check)
    } catch {
      let flags = UInt32(CLX_RENAME_NOREPLACE)
      do throws(Errno) { try held.rename(old.uuid, to: parent, copy, flags: flags) } catch .EEXIST {
        // Its user has made something of that name.
        let name = ".\(old.path.splitAtName.name).left-\(old.uuid)"
        try held.rename(old.uuid, to: parent, name, flags: flags)
      }
      throw error
    }
  }

  private func exchange(
    _ old: ContainerRecord, _ held: FD, _ parent: FD, _ check: () throws(Errno) -> Void
  ) throws(Errno) {
    let name = old.path.splitAtName.name
    let flags = UInt32(CLX_RENAME_EXCHANGE)
    try held.rename(old.uuid, to: parent, name, flags: flags)
    do throws(Errno) {
      guard try ObjectIdentity(of: old.uuid, in: held) == old.identity else { throw .ESTALE }
      try check()
    } catch {
      try held.rename(old.uuid, to: parent, name, flags: flags)
      throw error
    }
  }

  /// The numbers of those that are just being replaced by this process.
  private static let replacing = Mutex<Set<String>>([])

  /// Whether the row of a removed container is one that a replacement needs that goes on.
  static func isBeingReplaced(_ removed: RemovedContainer) -> Bool {
    replacing.withLock { $0.contains(removed.container.uuid) }
  }

  /// Has copies deleted whose replacement was stopped before it was done.
  package func endStoppedReplacements(_ scope: RecoveryScope = .store) throws(StoreError) {
    let outside = try registry.namesOfHomesElsewhere()
    for removed in try registry.removedContainers() where !removed.isBeingDeleted {
      let old = removed.container
      guard scope.reaches(containerAt: old.path.utf8, of: old.user, outside: outside) else { continue }
      guard let own = try forHome(of: removed.container.path), try own.isLeftCopy(removed) else { continue }
      _ = try registry.noteDeletion(of: removed)
    }
  }

  /// Whether what is kept as a removed container is the copy that was to take its place: the container is in
  /// its place itself.
  ///
  /// Where numbers of files were given anew, as in a copy of the store, neither of the two has the number.
  private func isLeftCopy(_ removed: RemovedContainer) throws(StoreError) -> Bool {
    let old = removed.container
    guard !Self.isBeingReplaced(removed), let identity = old.identity,
      let held = try heldDirectory(of: old), let kept = try? ObjectIdentity(of: old.uuid, in: held.fd),
      kept != identity
    else { return false }
    let (above, name) = old.path.splitAtName
    guard let parent = try? tree.fd.openDirectory(at: above) else { return false }
    return (try? ObjectIdentity(of: name, in: parent.fd)) == identity
  }
}

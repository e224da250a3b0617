// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO
package import Policy

// What is removed is moved, by one rename, to a directory beside the tree that nobody else gets into: no view
// shows it, and it is on the home's own filesystem. There it stays what it was, with its owners and modes, so
// it counts for its owner's quota; from there it is put back by one rename, or deleted in the end.
//
// A row of the registry goes with it (``RemovedContainer``). Whoever is stopped between the rename and the
// row leaves a container that is still marked for removal, or a row without its directory: the next one that
// removes or deletes containers ends both.

extension Containers {
  /// What came of the deletion of a removed container.
  package struct Deletion: Sendable {
    package fileprivate(set) var freed = FreedSpace()
    package fileprivate(set) var left: [LeftBehind] = []
  }

  /// Moves the directory that was made as this container to where it can be restored from; gives why it stays
  /// if it does.
  func hold(_ marked: ContainerRecord) throws(Errno) -> LeftBehind? {
    let record = try distinguished(marked)
    if elsewhere?.hasOtherStores == true {
      // By which of its apps it is used there is not known here.
      try? registry.forget(record)
      return LeftBehind(path: record.path, reason: "another store that has had this home may use it")
    }
    let held = try openRemoved()
    // Somebody may have been stopped just after that.
    if !held.fd.has(record.uuid), let stays = try take(record, to: held.fd) { return stays }
    guard held.fd.has(record.uuid) else {
      // It was gone before, or its home was.
      try? registry.forget(record)
      return nil
    }
    do throws(StoreError) { try noteRemoval(of: record) } catch { throw .EIO }
    return nil
  }

  /// Notes a container as removed, for which the oldest of its user's make way, and none that is in a home of
  /// others by now.
  @discardableResult
  func noteRemoval(of record: ContainerRecord) throws(StoreError) -> RemovedContainer {
    try store.followRemoved(of: record.user, in: registry)
    let home = try store.object(ofHomeIn: record.path, registry)
    return try registry.noteRemoval(of: record, from: home, at: Int64(time(nil)))
  }

  /// A container whose number no removed one has.
  ///
  /// Earlier versions have restored containers under their old numbers: whoever was stopped in that has left
  /// two with one.
  private func distinguished(_ record: ContainerRecord) throws(Errno) -> ContainerRecord {
    do throws(StoreError) {
      let isTaken = try registry.removedContainers(of: record.user).contains {
        $0.container.uuid == record.uuid
      }
      return isTaken ? try registry.renumber(record) : record
    } catch {
      throw .EIO
    }
  }

  /// Puts a removed container back to where containers of its kind are in its user's home.
  ///
  /// Throws if there is a container of that name by now. What waits for its home, root alone has restored.
  package func restore(_ removed: RemovedContainer) throws(StoreError) -> ContainerRecord {
    let old = removed.container
    guard try !RemovedHomes(store, registry).isOthers(removed) else {
      throw .noRemovedContainer(number: removed.number)
    }
    let home = try store.home(of: old.user)
    let own = try forHomeThatIsThere("Users/\(home)/")
    return try Self.restoring.with(removed.number) { () throws(StoreError) in
      try own.restore(removed, home: home)
    }
  }

  /// A deletion begins before a container is restored, which then is refused, or after that.
  ///
  /// For each by itself: what one lies on may not answer.
  private static let restoring = KeyedTurns<Int64>()

  private func restore(
    _ removed: RemovedContainer, home name: String
  ) throws(StoreError) -> ContainerRecord {
    let old = removed.container
    guard let held = try heldDirectory(of: old) else { throw .noRemovedContainer(number: removed.number) }
    let home = try openHome(name)
    let place = "Users/\(name)/\(ContainerLayout.path(of: old.identifier, old.kind))"
    let owner = Owner(
      try explaining("examine", "\(path)/Users/\(name)") { () throws(Errno) in try home.fd.status() })
    guard owner.uid == old.user else { throw .noHome(path: "\(path)/Users/\(name)") }
    let parent = try directory(of: old.kind, in: home.fd, owner, "\(path)/Users/\(name)")
    let container = ContainerLayout.name(of: old.identifier, old.kind)
    guard !parent.fd.has(container) else { throw .containerIsThere(path: "\(path)/\(place)") }
    try requireNoFlags(against: .addSubdirectory, above: "\(path)/\(place)", on: parent.fd)
    try refuseOtherSpelling(of: container, at: place, in: parent.fd)
    for other in try registry.containers(kind: old.kind, identifier: old.identifier, user: old.user) {
      // Its record makes way, as there is one for a name and a user; it can be in another home.
      try keepTeam(of: other)
    }
    let directory = try explaining("restore", "\(path)/\(place)") { () throws(Errno) in
      try held.fd.openDirectory(old.uuid)
    }
    try handOver(removed, directory.fd)
    var record = try registry.noteRestoration(of: removed, at: place)
    // What is noted on it counts more than the row.
    var noted = metadata.note(of: directory.fd)?.team
    if let team = record.team { noted = try otherTeam(on: directory.fd, than: team) }
    if let noted {
      try registry.note(noted, of: record)
      record.team = noted
    }
    do throws(Errno) {
      if let metadata = ContainerMetadata(record, gid: owner.gid) {
        try completeMetadata(metadata, in: directory.fd, owner)
      }
      try note(record, on: directory.fd)
      let from = Workshop(directory: held.fd, prefix: workshop.prefix, visibly: workshop.visibly)
      try from.give(old.uuid, to: parent.fd, as: container)
    } catch {
      try registry.forget(record)
      if error == .EEXIST { throw .containerIsThere(path: "\(path)/\(place)") }
      throw StoreError(error, doing: "restore", path: "\(path)/\(place)")
    }
    try registry.forget(removed)
    return record
  }

  private func keepTeam(of record: ContainerRecord) throws(StoreError) {
    guard let directory = try? tree.fd.openDirectory(at: record.path) else { return }
    try explaining("note the team of", "\(path)/\(record.path)") { () throws(Errno) in
      try keepTeam(of: record, on: directory.fd)
    }
  }

  /// Forgets removed containers that are back in their places, since whoever has restored or deleted them was
  /// stopped just then.
  ///
  /// One that is nowhere may lie beside a home that is not there.
  package func forgetRestored(_ scope: RecoveryScope = .store) throws(StoreError) {
    let outside = try registry.namesOfHomesElsewhere()
    for removed in try registry.removedContainers()
    where scope.reaches(removed.container.path.utf8, outside: outside) {
      guard let own = try forHome(of: removed.container.path), !Self.isBeingReplaced(removed) else {
        continue
      }
      try Self.restoring.with(removed.number) { () throws(StoreError) in
        guard try own.isGone(removed.container) else { return }
        if try own.waits(removed) { return }
        try registry.forget(removed)
      }
    }
  }

  /// Whether a removed container is not there any more; one that lies beside an ejected home may come back.
  private func isGone(_ record: ContainerRecord) throws(StoreError) -> Bool {
    if try heldDirectory(of: record) != nil { return false }
    return try !registry.isInEjectedHome(record.path)
  }

  /// Whether it is from a home elsewhere that is not there: what has the home's name is another one.
  private func waits(_ removed: RemovedContainer) throws(StoreError) -> Bool {
    guard !removed.isBeingDeleted, removed.home?.isOfHomeElsewhere == true else { return false }
    return try RemovedHomes(store, registry).home(of: removed) == nil
  }

  /// Deletes a removed container for its owner, which can't be taken back; what stays of it is found beside
  /// its place then.
  ///
  /// A home that is away keeps what it has until it is there again.
  package func delete(
    _ removed: RemovedContainer, rest: @escaping Pause = {}
  ) throws(StoreError) -> Deletion {
    let old = removed.container
    // Without the home, the store may have it; but what lies beside the home has to wait.
    let found = try forHome(of: old.path)
    if found == nil, store.homeElsewhere(of: old.path) != nil { return Deletion() }
    let isThere = try Self.restoring.with(removed.number) { () throws(StoreError) in
      try registry.noteDeletion(of: removed)
    }
    guard isThere else { return Deletion() }
    let own = found ?? self
    let deletion: Deletion
    if let held = try own.heldDirectory(of: old) {
      if let directory = try? held.fd.openDirectory(old.uuid) { try own.handOver(removed, directory.fd) }
      deletion = try explaining("delete", "what was removed from \(path)/\(old.path)") { () throws(Errno) in
        try old.uuid.withName { (name) throws(Errno) in
          try own.delete(name, old, in: held.fd, rest)
        }
      }
    } else {
      deletion = Deletion()
      guard try own.isGone(old) else { return deletion }
    }
    try registry.forget(removed)
    return deletion
  }

  private func delete(
    _ name: Name, _ record: ContainerRecord, in held: FD, _ rest: @escaping Pause
  ) throws(Errno) -> Deletion {
    var removal = OwnersRemoval(
      for: record.user, metadata, device: UInt64(try held.status().st_dev), rest: rest)
    var deletion = Deletion()
    do throws(Errno) {
      let isGone = try removal.remove(name, in: held)
      deletion.freed = removal.freed
      if isGone { return deletion }
      let place: String
      do throws(Errno) { place = try putBeside(name, record, from: held) } catch .ENOENT {
        // Its home is gone, and with that all that others had in it.
        try access.removeTree(name, in: held)
        return deletion
      }
      deletion.left = removal.kept.map { kept in
        let path = kept.path.map { String(decoding: $0, as: UTF8.self) }
        return LeftBehind(path: ([place] + path).joined(separator: "/"), reason: kept.reason.words)
      }
    } catch .ENOENT {
      // Another thread was faster.
    }
    return deletion
  }

  /// What a removed container takes; nothing where it is not there.
  package func measure(_ removed: RemovedContainer, pause: Pause = {}) throws(Errno) -> FreedSpace {
    var size = FreedSpace()
    guard let directory = store.openDirectory(of: removed) else { return size }
    // Until it is given along, what is in it is the former number's.
    let owner = try directory.fd.status().st_uid
    try DeepWalk.through(directory.fd, mostWaiting: StorageUsage.mostWaiting) { (entry) throws(Errno) in
      try pause()
      guard let status = try? entry.directory.status(of: entry.name), status.st_uid == owner
      else { return false }
      size.add(status)
      return status.isDirectory
    }
    return size
  }

  // MARK: Where it is

  func openRemoved() throws(Errno) -> OwnedFD {
    let found: OwnedFD?
    do throws(StoreError) {
      if let elsewhere {
        found = try elsewhere.openRemoved(making: true)
      } else {
        found = try store.openRemoved()
      }
    } catch {
      throw .EIO
    }
    guard let found else { throw .ENOMEDIUM }
    return found
  }

  /// The directory that a removed container is in: on its home's filesystem, or on the store's, if the home
  /// was there then.
  func heldDirectory(of record: ContainerRecord) throws(StoreError) -> OwnedFD? {
    if let own = try elsewhere?.openRemoved(making: false), own.fd.has(record.uuid) { return own }
    let stores = try store.openRemoved()
    if stores.fd.has(record.uuid) { return stores }
    return nil
  }
}

extension Store {
  /// The directory that a removed container is now; nil if it can't be had.
  package func openDirectory(of removed: RemovedContainer) -> OwnedFD? {
    let record = removed.container
    if let own = try? homeElsewhere(of: record.path)?.openRemoved(making: false),
      let directory = try? own.fd.openDirectory(record.uuid)
    {
      return directory
    }
    guard let stores = try? openRemoved() else { return nil }
    return try? stores.fd.openDirectory(record.uuid)
  }
}

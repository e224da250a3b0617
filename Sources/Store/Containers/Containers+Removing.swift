// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
package import Policy

extension Containers {
  /// What was removed, and what of it stays.
  package struct Removal: Sendable {
    package var records: [ContainerRecord] = []
    /// What stays of each container.
    private var remainders: [(of: ContainerRecord, left: [LeftBehind])] = []

    /// All that stays.
    package var left: [LeftBehind] { remainders.flatMap(\.left) }

    /// What stays of the containers with these identifiers, of one user or of all.
    package func left(of identifiers: [AppIdentifier], user: UInt32?) -> [LeftBehind] {
      remainders.filter { remainder in
        (user == nil || remainder.of.user == user)
          && identifiers.contains { $0.isSame(as: remainder.of.identifier) }
      }.flatMap(\.left)
    }

    package init() {}

    package mutating func add(_ other: Removal) {
      records += other.records
      remainders += other.remainders
    }

    /// Its home does not answer.
    package mutating func add(waiting record: ContainerRecord) {
      let reason = "its disk or server does not answer; it is removed when that does"
      note([LeftBehind(path: record.path, reason: reason)], of: record)
    }

    mutating func note(_ left: [LeftBehind], of record: ContainerRecord) {
      if !left.isEmpty { remainders.append((record, left)) }
    }
  }

  /// Removes containers whose apps are gone, of one user or of all, to where they can be restored from; what
  /// was stopped on the way there is ended.
  ///
  /// One that can't be removed stays as it is, keeps none of the others, and is tried again the next time.
  @discardableResult
  package func removeMarked(
    of user: UInt32? = nil, where isMeant: (ContainerRecord) -> Bool = { _ in true }
  ) throws(StoreError) -> Removal {
    try clearWorkshop()
    var removal = Removal()
    for record in try registry.containers(user: user, isMarkedForRemoval: true) where isMeant(record) {
      do throws(Errno) {
        // What is in a home that is away stays until it is there again.
        let own: Containers?
        do throws(StoreError) { own = try forRemoval(of: record) } catch { throw .EIO }
        guard let own else { continue }
        if let stays = try own.hold(record) {
          removal.note([stays], of: record)
        } else {
          removal.records.append(record)
        }
      } catch {
        removal.note([LeftBehind(path: record.path, reason: error.message)], of: record)
      }
    }
    return removal
  }

  /// The containers of the home that one is in; nil while that home is not there, also if another one of its
  /// name is.
  private func forRemoval(of record: ContainerRecord) throws(StoreError) -> Containers? {
    let found = try forHome(of: record.path)
    guard let own = found, try registry.isInEjectedHome(record.path) else { return found }
    let isThere = (try? tree.fd.status(at: record.path)) != nil
    if isThere { return own }
    return try own.heldDirectory(of: record) == nil ? nil : own
  }

  /// Removes the directory that was made as this container, to where it can be restored from; gives why it
  /// stays if it does.
  @discardableResult
  package func remove(_ record: ContainerRecord) throws(StoreError) -> LeftBehind? {
    let containers = try forHomeThatIsThere(record.path)
    return try explaining("remove the container", "\(path)/\(record.path)") { () throws(Errno) in
      try containers.hold(record)
    }
  }

  /// Takes it out of everyone's reach, in one step; gives what lies in its place if that is another
  /// directory.
  func take(_ record: ContainerRecord, to held: FD) throws(Errno) -> LeftBehind? {
    do throws(Errno) {
      return try tree.fd.withParent(of: record.path) { (parent, name) throws(Errno) in
        if let stays = try reasonToLeave(name, in: parent, record) { return stays }
        let target = Workshop(directory: held, prefix: workshop.prefix, visibly: workshop.visibly)
        try target.take(name, from: parent, as: record.uuid)
        try held.synchronize(dataOnly: false)
        return nil
      }
    } catch .ENOENT, .ENOTDIR, .ELOOP {
      // It is gone, or its home is.
      return nil
    }
  }

  /// What stands in the place of a container and is not the one that was made; that is not one any more then.
  private func reasonToLeave(
    _ name: String, in parent: FD, _ record: ContainerRecord
  ) throws(Errno) -> LeftBehind? {
    let found = try parent.child(name)
    let status = try found.fd.status()
    let device = try parent.status().st_dev
    let isSame = status.isDirectory && status.st_dev == device
    if isSame, isTheOne(found.fd, status, record) {
      // All of it stays, and is tried again.
      let flags = try metadata.security(of: found.fd).flags
      let above = try self.flags(against: .deleteChild, on: parent).map(Self.words(forFlagsAbove:))
      let stays =
        reasonToKeep(uid: record.user, kind: .directory, flags: flags, whenRemovedFor: record.user)?.words
        ?? above
      return stays.map { LeftBehind(path: record.path, reason: $0) }
    }
    // The data may be the team's all the same, put there from outside, and the record is about to go.
    if isSame { try keepTeam(of: record, on: found.fd) }
    try? registry.forget(record)
    return LeftBehind(path: record.path, reason: "it is not the directory that was created as this container")
  }

  /// One that was noted before directories were is known by what describes it, which nobody but us can write.
  func isTheOne(_ found: FD, _ status: FileStatus, _ record: ContainerRecord) -> Bool {
    guard status.st_uid == record.user else { return false }
    let found = (fd: found, identity: ObjectIdentity(status, of: found))
    // Of an import that was stopped, either directory can be there.
    if metadata.note(of: found.fd)?.origin == .init(record.uuid, found.identity) { return true }
    if let identity = record.identity { return identity == found.identity }
    guard record.kind.contentClass != nil else { return true }
    guard let container = try? found.fd.reopened(O_RDONLY | O_DIRECTORY),
      let bytes = try? container.fd.contents(of: ContainerLayout.metadataName, limit: 1 << 16)
    else { return false }
    return ContainerMetadata(bytes)?.uuid == record.uuid
  }

  /// Gives what stays a name beside the container's, which is no container's; in the user's home if there is
  /// no such place any more.
  func putBeside(
    _ taken: Name, _ record: ContainerRecord, from directory: FD? = nil
  ) throws(Errno) -> String {
    let (above, name) = record.path.splitAtName
    let from = Workshop(
      directory: directory ?? workshop.directory, prefix: workshop.prefix, visibly: workshop.visibly)
    do throws(Errno) {
      return try Self.put(taken, from, beside: name, in: tree.fd.openDirectory(at: above), above, record)
    } catch .ENOENT, .ENOTDIR, .ELOOP {
      guard directory != nil, let home = Homes.name(in: record.path) else { throw .ENOTDIR }
      let path = "Users/\(home)"
      let opened = try tree.fd.openDirectory(at: path)
      // Nobody else's directory gets anything.
      guard try opened.fd.status().st_uid == record.user else { throw .ENOTDIR }
      return try Self.put(taken, from, beside: name, in: opened, path, record)
    }
  }

  private static func put(
    _ taken: Name, _ workshop: Workshop, beside name: String, in parent: consuming OwnedFD, _ path: String,
    _ record: ContainerRecord
  ) throws(Errno) -> String {
    var place = ".\(name).left-\(record.uuid)"
    while true {
      do throws(Errno) {
        try place.withName { (name) throws(Errno) in try workshop.give(taken, to: parent.fd, as: name) }
        return "\(path)/\(place)"
      } catch .EEXIST {
        // Whoever's home it is can have made it; they can't know the next one.
        place = ".\(name).left-\(UUIDText.random())"
      }
    }
  }
}

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

    mutating func note(_ left: [LeftBehind], of record: ContainerRecord) {
      if !left.isEmpty { remainders.append((record, left)) }
    }
  }

  /// Removes the containers of apps that are gone; what was stopped on the way there is ended.
  ///
  /// One that can't be removed stays as it is, keeps none of the others, and is tried again the next time.
  @discardableResult
  package func removeMarked() throws(StoreError) -> Removal {
    try clearWorkshop()
    var removal = Removal()
    for record in try registry.containers(isMarkedForRemoval: true) {
      do throws(Errno) {
        // What is in a home that is away stays until it is there again.
        let own: Containers?
        do throws(StoreError) { own = try forHome(of: record.path) } catch { throw .EIO }
        guard let own else { continue }
        let left = try own.empty(record)
        removal.note(left, of: record)
        // What has its place still was not removed.
        if left.first?.path != record.path { removal.records.append(record) }
      } catch {
        removal.note([LeftBehind(path: record.path, reason: error.message)], of: record)
      }
    }
    return removal
  }

  /// Removes the directory that was made as this container, and tells what of it stays: what is not its
  /// owner's, and what a flag protects.
  ///
  /// That is found beside it then, under a name of its own.
  @discardableResult
  package func remove(_ record: ContainerRecord) throws(StoreError) -> [LeftBehind] {
    let containers = try forHomeThatIsThere(record.path)
    return try explaining("remove the container", "\(path)/\(record.path)") { () throws(Errno) in
      try containers.empty(record)
    }
  }

  private func empty(_ record: ContainerRecord) throws(Errno) -> [LeftBehind] {
    if elsewhere?.hasOtherStores == true {
      // By which of its apps it is used there is not known here.
      try? registry.forget(record)
      return [LeftBehind(path: record.path, reason: "another store that has had this home may use it")]
    }
    let name = Self.takenName(of: record)
    if !workshop.directory.has(name), let stays = try take(record, as: name) { return [stays] }
    let left = try name.withName { (name) throws(Errno) in try empty(name, record) }
    try? registry.forget(record)
    return left
  }

  /// Where it is while it is removed: whoever is stopped then finds it there again.
  private static func takenName(of record: ContainerRecord) -> String { "doomed-\(record.uuid)" }

  /// Takes it out of everyone's reach, in one step; gives what lies in its place if that is another
  /// directory.
  private func take(_ record: ContainerRecord, as taken: String) throws(Errno) -> LeftBehind? {
    do throws(Errno) {
      return try tree.fd.withParent(of: record.path) { (parent, name) throws(Errno) in
        if let stays = try reasonToLeave(name, in: parent, record) { return stays }
        try workshop.take(name, from: parent, as: taken)
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
      return reasonToKeep(uid: record.user, kind: .directory, flags: flags, whenRemovedFor: record.user)
        .map { LeftBehind(path: record.path, reason: $0.words) }
    }
    try? registry.forget(record)
    return LeftBehind(path: record.path, reason: "it is not the directory that was created as this container")
  }

  /// One that was noted before directories were is known by what describes it, which nobody but us can write.
  func isTheOne(_ found: FD, _ status: FileStatus, _ record: ContainerRecord) -> Bool {
    guard status.st_uid == record.user else { return false }
    if let identity = record.identity { return identity == ObjectIdentity(status, of: found) }
    guard record.kind.contentClass != nil else { return true }
    guard let container = try? found.reopened(O_RDONLY | O_DIRECTORY),
      let bytes = try? container.fd.contents(of: ContainerLayout.metadataName, limit: 1 << 16)
    else { return false }
    return ContainerMetadata(bytes)?.uuid == record.uuid
  }

  /// Removes what was taken; what stays is put back beside its place.
  private func empty(_ taken: Name, _ record: ContainerRecord) throws(Errno) -> [LeftBehind] {
    let device = UInt64(try workshop.directory.status().st_dev)
    var removal = OwnersRemoval(for: record.user, metadata, device: device)
    do throws(Errno) {
      if try removal.remove(taken, in: workshop.directory) { return [] }
    } catch .ENOENT {
      return []
    }
    let place = try putBeside(taken, record)
    return removal.kept.map { kept in
      let path = kept.path.map { String(decoding: $0, as: UTF8.self) }
      return LeftBehind(path: ([place] + path).joined(separator: "/"), reason: kept.reason.words)
    }
  }

  /// Gives what stays a name beside the container's, which is no container's.
  func putBeside(_ taken: Name, _ record: ContainerRecord) throws(Errno) -> String {
    let (above, name) = record.path.splitAtName
    let parent = try tree.fd.openDirectory(at: above)
    var place = ".\(name).left-\(record.uuid)"
    while true {
      do throws(Errno) {
        try place.withName { (name) throws(Errno) in try workshop.give(taken, to: parent.fd, as: name) }
        return "\(above)/\(place)"
      } catch .EEXIST {
        // Whoever's home it is can have made it; they can't know the next one.
        place = ".\(name).left-\(UUIDText.random())"
      }
    }
  }
}

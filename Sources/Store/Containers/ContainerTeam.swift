// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import JSON
internal import LinuxIO
package import Policy

// The team of a container is noted on its directory, in an attribute that only the daemon can read or write.
// The registry has it too, but a row can be lost: its home comes from another store, a process was stopped
// between two steps, or the directory was replaced from outside. As long as the directory exists, an app of
// the same name that somebody else has signed gets nothing of it.

/// What is noted on the directory of a container.
struct ContainerNote: Codable, Equatable {
  let team: Team
  /// The container that a directory was made as, and which directory that is: a copy has the same note.
  struct Origin: Codable, Equatable {
    let uuid: String
    let inode: UInt64
    /// Its creation time, as identities have it.
    let created: Int64

    init(_ uuid: String, _ identity: ObjectIdentity) {
      (self.uuid, inode, created) = (uuid, identity.inode, identity.created)
    }
  }
  /// Nil where that is not known.
  let origin: Origin?

  init(_ team: Team, _ origin: Origin?) {
    self.team = team
    self.origin = origin
  }

  private enum Key: String, CodingKey { case text, root, origin }

  // Earlier versions have noted the team alone, and read what is noted now.
  init(from decoder: any Decoder) throws {
    team = try Team(from: decoder)
    origin = try decoder.container(keyedBy: Key.self).decodeIfPresent(Origin.self, forKey: .origin)
  }

  func encode(to encoder: any Encoder) throws {
    var fields = encoder.container(keyedBy: Key.self)
    try fields.encode(team.text, forKey: .text)
    try fields.encodeIfPresent(team.root, forKey: .root)
    try fields.encodeIfPresent(origin, forKey: .origin)
  }
}

extension Metadata {
  private var teamName: StaticString { isSystem ? "trusted.insula.team" : "user.insula.team" }

  /// Nil where nothing sensible is noted.
  func note(of container: FD) -> ContainerNote? {
    let note = try? read(teamName, of: container) { bytes in
      bytes.flatMap { try? JSONText.decode(ContainerNote.self, from: Array($0)) }
    }
    return note.flatMap { $0 }
  }

  func setNote(_ note: ContainerNote, of container: FD) throws(Errno) {
    guard let bytes = try? JSONText.encode(note) else { throw .EINVAL }
    try set(teamName, to: bytes, on: container)
  }
}

extension StoreError {
  /// A container is another team's.
  package static func container(
    _ record: ContainerRecord, at path: String, isNotFor team: Team, but other: Team
  ) -> StoreError {
    .containerOfOtherTeam(
      path: path, identifier: record.identifier.text, home: Homes.name(in: record.path) ?? "NAME",
      team: team.words, other: other.words)
  }
}

extension Store {
  /// The team that is noted on the directory of a container; nil if there is none.
  package func notedTeam(ofContainerAt path: String) -> Team? {
    note(ofContainerAt: path)?.team
  }

  private func note(ofContainerAt path: String) -> ContainerNote? {
    guard let container = try? tree.openDirectory(at: path) else { return nil }
    return Metadata(isSystem: description.mode == .system).note(of: container.fd)
  }

  /// A record with the team that counts for its directory: the note on that counts more than the record.
  package func withNotedTeam(
    _ record: ContainerRecord, _ registry: Registry
  ) throws(StoreError) -> ContainerRecord {
    guard let noted = notedTeam(ofContainerAt: record.path), noted != record.team else { return record }
    if let team = record.team, try registry.isSuccessor(team, of: noted) { return record }
    var record = record
    record.team = noted
    return record
  }

  /// The container in a home of which its directory alone says whose it is; nil if there is none.
  ///
  /// The registry may have lost its record, or the home comes from another store.
  package func unrecordedContainer(
    _ kind: ContainerKind, _ identifier: AppIdentifier, of user: UInt32, home: String
  ) -> ContainerRecord? {
    let path = "Users/\(home)/\(ContainerLayout.path(of: identifier, kind))"
    return note(ofContainerAt: path).map { note in
      ContainerRecord(
        uuid: note.origin.flatMap { UUIDText.canonical($0.uuid) } ?? UUIDText.random(), kind: kind,
        identifier: identifier, user: user,
        path: path, team: note.team)
    }
  }
}

extension Containers {
  /// Throws if a directory that is there is another team's, as is noted on it; the registry learns that.
  func checkNotedTeam(
    of record: ContainerRecord, named name: String, in parent: FD, for team: Team
  ) throws(StoreError) {
    guard let directory = try? parent.openDirectory(name),
      let noted = try otherTeam(on: directory.fd, than: team)
    else { return }
    // With its identity, so that it can be removed for its user.
    if record.team != noted { try registry.note(noted, of: record) }
    _ = try noteIdentity(of: record, named: name, in: parent)
    throw .container(record, at: "\(path)/\(record.path)", isNotFor: team, but: noted)
  }

  /// Throws if another team than one's own, or a former one of that, is noted on a directory.
  ///
  /// Nobody writes another team over a note: what is in the directory is for apps of that team alone.
  func requireNoOtherTeam(on directory: FD, _ record: ContainerRecord, for team: Team) throws(StoreError) {
    guard let noted = try otherTeam(on: directory, than: team) else { return }
    throw .container(record, at: "\(path)/\(record.path)", isNotFor: team, but: noted)
  }

  /// The team that is noted on a directory, if its data are not for the other team.
  func otherTeam(on directory: FD, than team: Team) throws(StoreError) -> Team? {
    guard let noted = metadata.note(of: directory)?.team, noted != team,
      try !registry.isSuccessor(team, of: noted)
    else { return nil }
    return noted
  }

  /// Notes the containers of that name in a user's home that no record is about, so that they can be removed
  /// for the user.
  package func noteUnrecorded(_ identifier: AppIdentifier, of user: UInt32) throws(StoreError) {
    guard let home = try? store.home(of: user) else { return }
    for kind in ContainerKind.allCases {
      let path = "Users/\(home)/\(ContainerLayout.path(of: identifier, kind))"
      guard let directory = try? tree.fd.openDirectory(at: path),
        let identity = try? ObjectIdentity(directory.fd.status(), of: directory.fd),
        let team = metadata.note(of: directory.fd)?.team,
        try registry.containers(kind: kind, identifier: identifier, user: user).isEmpty
      else { continue }
      let record = try registry.note(
        ContainerRecord(
          uuid: UUIDText.random(), kind: kind, identifier: identifier, user: user, path: path, team: team))
      _ = try note(identity, of: record)
    }
  }

  /// Notes on the directory of a container which one it is, and whose.
  func note(_ record: ContainerRecord, on directory: FD) throws(Errno) {
    guard let team = record.team else { return }
    let identity = ObjectIdentity(try directory.status(), of: directory)
    let note = ContainerNote(team, .init(record.uuid, identity))
    if metadata.note(of: directory) == note { return }
    do throws(Errno) {
      try metadata.setNote(note, of: directory)
    } catch {
      // In the store the registry has it; a full disk keeps no app from starting.
      guard elsewhere == nil, [.EOPNOTSUPP, .ENOSPC, .EDQUOT].contains(error) else { throw error }
    }
  }

  /// Notes on a directory whose team's it is, before its record is lost; not which container it is, since
  /// that is in doubt.
  func keepTeam(of record: ContainerRecord, on directory: FD) throws(Errno) {
    guard let team = record.team, metadata.note(of: directory) == nil else { return }
    try metadata.setNote(ContainerNote(team, nil), of: directory)
  }

  /// Notes their teams on the containers of an earlier version, as far as somebody goes.
  package func noteTeams(_ scope: RecoveryScope) throws(StoreError) {
    let outside = try registry.namesOfHomesElsewhere()
    try noteTeams { scope.reaches($0.path.utf8, outside: outside) }
  }

  /// The same in one home.
  func noteTeams(inHome home: String) throws(StoreError) {
    let prefix = "Users/\(home)/"
    try noteTeams { $0.path.utf8.starts(with: prefix.utf8) }
  }

  private func noteTeams(where isMeant: (ContainerRecord) -> Bool) throws(StoreError) {
    for record in try registry.containers() where isMeant(record) {
      guard let directory = try? tree.fd.openDirectory(at: record.path),
        metadata.note(of: directory.fd) == nil, let status = try? directory.fd.status(),
        isTheOne(directory.fd, status, record)
      else { continue }
      // One that takes no attribute is as safe as before: the registry has its team.
      try? note(record, on: directory.fd)
    }
  }
}

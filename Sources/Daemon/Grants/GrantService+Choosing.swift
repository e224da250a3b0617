// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import Volume

// What is to be granted is looked at before anything is noted.

extension GrantService {
  /// What is to be granted, as it is found now.
  func wanted(
    _ identifier: AppIdentifier, _ path: String, _ inode: UInt64?, _ access: GrantAccess?,
    for user: UInt32, _ caller: CallerIdentity
  ) throws(GrantFailure) -> GrantRecord {
    let app = try installed(identifier, user)
    let isWritable = try self.access(access, app) == .readWrite
    let names = volume.storedPath(GrantPath.names(Array(path.utf8)), for: caller.uid)
    if let refusal = refusalToGrant(names, to: app.identifier) {
      throw .refused(refusal, path: path, app: app.identifier.text)
    }
    let chosen: ChosenObject
    do throws(Errno) {
      chosen = try volume.choose(
        names, by: caller.credentials, isMember: caller.membership, writing: isWritable)
      if let inode, inode != chosen.shownInode { throw .ESTALE }
    } catch {
      throw .errno(error, path: path, writing: isWritable)
    }
    return GrantRecord(
      identifier: app.identifier, user: user, team: app.signer, path: names, isWritable: isWritable,
      isDirectory: chosen.isDirectory, identity: chosen.identity, granted: Int64(time(nil)))
  }

  /// Grants it as it was meant, in its user's turn; what was named is given up for it.
  func put(_ wanted: GrantRecord, on condition: GrantCondition?) throws(GrantFailure) -> GrantRecord {
    guard let condition else { return try put(wanted) }
    let app = wanted.identifier
    guard condition.team.isSame(as: wanted.team) else { throw .otherTeam(app: app.text) }
    guard let number = condition.former else { return try put(wanted) }
    guard let former = volume.granted([number]).first,
      former.user == wanted.user, former.identifier == app, former.team == wanted.team
    else {
      throw .noGrant(path: wanted.text, app: app.text)
    }
    var wanted = wanted
    wanted.isWritable = wanted.isWritable && former.isWritable
    let granted = try put(wanted)
    if granted.id != number { try takeBack([former]) }
    return granted
  }

  /// Which access an app gets that is granted something.
  private func access(_ asked: GrantAccess?, _ app: InstalledApp) throws(GrantFailure) -> GrantAccess {
    switch (try chosenFiles(of: app), asked) {
    case (.readOnly, .readWrite): throw .onlyReads(app: app.identifier.text)
    case (.readWrite, nil): return .readWrite
    case (_, let asked): return asked ?? .readOnly
    }
  }
}

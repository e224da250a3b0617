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
    let names = volume.storedPath(GrantPath.names(Array(path.utf8)))
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

  /// Which access an app gets that is granted something.
  private func access(_ asked: GrantAccess?, _ app: InstalledApp) throws(GrantFailure) -> GrantAccess {
    switch (try chosenFiles(of: app), asked) {
    case (.readOnly, .readWrite): throw .onlyReads(app: app.identifier.text)
    case (.readWrite, nil): return .readWrite
    case (_, let asked): return asked ?? .readOnly
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import JSON
internal import LinuxIO
internal import Policy
internal import Volume

extension Server {
  /// Serves a view for a backup: over a connection of the caller's own, or one that is made here; then its
  /// mount comes back.
  func serveBackup(
    _ extent: BackupExtent, encodingLinks encodesLinks: Bool, by caller: LaunchedBy, over theirs: SharedFD?
  ) throws(Errno) -> SharedFD? {
    let view = try volume.backupView(of: extent, user: caller.user, encodingLinks: encodesLinks)
    do throws(Errno) {
      let left = KeptBackup(extent, encodingLinks: encodesLinks, user: caller.user, pid: caller.pid)
      let memory = try kept?.keep(left.encoded, as: .backup, view: view.number)
      let run = BackupRun(
        user: caller.user, pid: caller.pid, caller.process, view, caller.share, kept: memory)
      if let theirs {
        let copy = try theirs.use { (fd) throws(Errno) in try fd.duplicated() }
        try begin(run, caller.process, connection: copy)
        return nil
      }
      let made = try Mount.detached(
        for: caller.user, caller.group, source: "insula", [.noDevices, .noSetUserID, .noPrograms, .readOnly])
      let mount = made.mount
      try begin(run, caller.process, connection: made.takeConnection())
      return mount
    } catch {
      kept?.forgetAll(of: view.number)
      // What its kernel would have said at the end.
      view.ended()
      throw error
    }
  }

  private func begin(
    _ run: BackupRun, _ process: SharedFD, connection: consuming OwnedFD
  ) throws(Errno) {
    let view = run.view
    kept?.keep(FD(process.number), as: .appProcess, view: view.number)
    kept?.keep(connection.fd, as: .connection, view: view.number)
    let session = try Session(view, over: connection, settings: appSettings)
    guard backups.add(run) else { throw .ECANCELED }
    try serve(session, of: view.number) { [backups] in backups.remove(view.number) }
    try waitUntilStarted(view) { backups.has(view.number) }
  }

  // MARK: The next worker

  /// Makes the views again of the backups that another worker has left; those that can't go on end.
  func takeoversOfBackups(_ kept: KeptState) -> [BackupTakeover] {
    kept.views.filter { kept.descriptor(.backup, view: $0) != nil }.compactMap { view in
      do throws(Errno) {
        guard let left = LeftBackup(view, in: kept) else { throw .EIO }
        return try takeover(of: left, view: view)
      } catch {
        DaemonLog.write("a backup that was being made can't go on: \(error.message)")
        let connection = kept.descriptor(.connection, view: view)
        kept.forgetAll(of: view)
        if let connection { _ = close(connection.raw) }
        return nil
      }
    }
  }

  private func takeover(of left: LeftBackup, view number: UInt32) throws(Errno) -> BackupTakeover {
    let share = try views.room(for: left.backup.user)
    let view = try volume.backupView(
      of: left.backup.extent, user: left.backup.user, encodingLinks: left.backup.encodesLinks ?? false,
      takingOver: number)
    guard let first = view.firstMessage else {
      view.ended()
      throw .ENOENT
    }
    let run = BackupRun(
      user: left.backup.user, pid: left.backup.pid, left.process, view, share, kept: left.memory)
    return BackupTakeover(
      run: run, left: LeftView(view: view, connection: left.connection, firstMessage: first))
  }

  /// Begins it again.
  func begin(_ takeover: BackupTakeover) throws(Errno) -> ServingOn? {
    try begin(takeover.left) {
      backups.add(takeover.run)
    } ended: { [backups] in
      backups.remove(takeover.run.view.number)
    }
  }
}

/// What the next worker is to know of a backup that is being made.
struct KeptBackup: Codable {
  let user: UInt32
  let pid: Int32
  private var home: String?
  private var containers: [String]?
  let encodesLinks: Bool?

  init(_ extent: BackupExtent, encodingLinks encodesLinks: Bool, user: UInt32, pid: Int32) {
    self.encodesLinks = encodesLinks
    self.user = user
    self.pid = pid
    switch extent {
    case .wholeTree: break
    case .home(let name): home = name
    case .containers(let paths): containers = paths
    }
  }

  var extent: BackupExtent { home.map { .home($0) } ?? containers.map { .containers($0) } ?? .wholeTree }
  var encoded: [UInt8] { (try? JSONText.encode(self)) ?? [] }
}

/// A backup as another worker has left it.
struct LeftBackup {
  let backup: KeptBackup
  let process: SharedFD
  let connection: FD
  let memory: SharedMemory

  /// Nil if it is no backup, or anything of it is lost.
  init?(_ view: UInt32, in kept: KeptState) {
    guard let (bytes, memory) = kept.data(.backup, view: view),
      let connection = kept.descriptor(.connection, view: view),
      let process = kept.descriptor(.appProcess, view: view),
      let backup = try? JSONText.decode(KeptBackup.self, from: bytes)
    else { return nil }
    self.backup = backup
    self.memory = memory
    self.process = SharedFD(OwnedFD(owning: process.raw))
    self.connection = connection
  }
}

/// A backup that can go on.
struct BackupTakeover {
  let run: BackupRun
  let left: LeftView
}

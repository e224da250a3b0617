// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
internal import Volume

/// Makes volumes of directories.
struct VolumeAttaching {
  let store: Store
  let volume: Volume

  private var isSystem: Bool { store.description.mode == .system }

  /// What a volume may lie on: what its owner can't answer for, and no server.
  private static let kinds = ["ext4", "xfs", "btrfs", "tmpfs", "f2fs", "bcachefs", "zfs", "overlay"]

  /// The kind of filesystem on which a directory lies, if it may be a volume.
  ///
  /// The caller may have opened it on a filesystem of their own, which is asked and may take its time.
  func kind(of directory: FD) throws(VolumeFailure) -> String {
    guard (try? directory.status().isDirectory) == true else { throw .noDirectory }
    guard let kind = try? directory.filesystemKind().name else { throw .kind("a filesystem that hides") }
    guard Self.kinds.contains(kind) else { throw .kind(kind) }
    guard !volume.settings.fileHandles || directory.handle() != nil else { throw .noHandles(kind) }
    return kind
  }

  /// Throws for what must not be a volume beside those that there are; `user` is who asks.
  func checkOverlap(_ added: AttachedVolume, for user: UInt32) throws(VolumeFailure) {
    if volume.attached.overlapsStore(added, store.tree) { throw .overlapsStore }
    try refuse(volume.attached.overlapping(added), for: user)
  }

  private func refuse(_ other: AttachedVolume?, for user: UInt32) throws(VolumeFailure) {
    guard let other else { return }
    // Root may know of all.
    throw .overlaps(other.isVisible(to: user) || user == 0 ? other.record.title : nil)
  }

  /// Throws for a directory in which no home must be made.
  func checkSource(_ record: VolumeRecord, _ directory: FD, for user: UInt32) throws(VolumeFailure) {
    let names = record.path.split(separator: UInt8(ascii: "/"))
    if names.contains(where: { $0.elementsEqual(HomeSource.ownName.utf8) }) {
      throw .configuration("what lies in '\(HomeSource.ownName)' is the daemon's, and no home")
    }
    let holding = volume.attached.holding(directory)
    if holding.isStore { throw .overlapsStore }
    try refuse(holding.volume, for: user)
  }

  /// Throws unless a directory may be the volume of a user: it is theirs, and they get to it themselves.
  ///
  /// What others have closed since is closed to them here too.
  func check(_ record: VolumeRecord, _ directory: FD, asOf caller: CallerIdentity) throws(VolumeFailure) {
    guard isSystem, caller.uid != 0 else { return }
    guard (try? directory.status())?.st_uid == caller.uid else { throw .notTheirs }
    try checkWay(to: record, for: caller)
  }

  /// The user of a volume that was added before, by the accounts of today.
  func owner(of record: VolumeRecord) throws(VolumeFailure) -> CallerIdentity {
    guard isSystem, let user = record.owner else { return .ourselves }
    guard let account = Account.numbered(user) else {
      throw .missing(path: String(decoding: record.path, as: UTF8.self).sanitized, .EACCES)
    }
    return CallerIdentity(uid: user, gid: account.gid, groups: account.groups)
  }

  /// Throws unless somebody gets to the directory themselves.
  private func checkWay(to record: VolumeRecord, for caller: CallerIdentity) throws(VolumeFailure) {
    guard let reader = caller.reader else { return }
    let outcome = Mutex<VolumeFailure?>(nil)
    do {
      try JoinableThread.run(name: "way") {
        try reader.prepareThread()
        do throws(VolumeFailure) {
          try reader.read { () throws(VolumeFailure) in _ = try record.openDirectory() }
        } catch {
          outcome.withLock { $0 = error }
        }
      }
    } catch {
      throw .missing(path: String(decoding: record.path, as: UTF8.self).sanitized, .EACCES)
    }
    if let failure = outcome.withLock({ $0 }) { throw failure }
  }

  /// Serves a directory as the volume of a record: in root's store by a mount that nobody else has, so that
  /// nothing that is mounted in it, now or later, is a part of it.
  ///
  /// It is no part of the tree yet.
  ///
  /// A `new` home is made there.
  func prepare(
    _ directory: SharedFD, as record: VolumeRecord, isNew: Bool = false
  ) throws(VolumeFailure) -> AttachedVolume {
    let engine: VolumeEngine
    let root: SharedFD
    do throws(Errno) {
      engine = try directory.use { (fd) throws(Errno) in try VolumeEngine.directory(record, fd) }
      root = isSystem ? try mount(directory, isReadOnly: record.isReadOnly) : directory
    } catch {
      throw .mount(error)
    }
    let home = record.place == .users ? try store.home(record, in: root, isNew: isNew) : nil
    if home != nil, (try? volume.metadata.keepsSecurity(on: FD(root.number))) != true {
      throw .unfitForHomes(engine.name)
    }
    do throws(Errno) {
      return try AttachedVolume(record, engine, of: directory, root: root, home: home, in: store.tree)
    } catch {
      throw .mount(error)
    }
  }

  private func mount(_ directory: SharedFD, isReadOnly: Bool) throws(Errno) -> SharedFD {
    let limits: DetachedMount.Limits =
      isReadOnly ? [.noSetUserID, .noDevices, .readOnly] : [.noSetUserID, .noDevices]
    return SharedFD(
      try directory.use { (fd) throws(Errno) in try DetachedMount.copy(of: fd, adding: limits) })
  }
}

extension VolumeRecord {
  /// Opens the directory that it is about; no link leads to it.
  func openDirectory() throws(VolumeFailure) -> OwnedFD {
    let shown = String(decoding: path, as: UTF8.self).sanitized
    do throws(Errno) {
      let opened = try path.withName { (path) throws(Errno) in
        try FD.cwd.openWithoutLinks(path, O_DIRECTORY | pathOnly)
      }
      guard ObjectIdentity(try opened.fd.status(), of: opened.fd) == identity else { throw .ESTALE }
      return opened
    } catch .ESTALE {
      throw .replaced(path: shown)
    } catch {
      throw .missing(path: shown, error)
    }
  }
}

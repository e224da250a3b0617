// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
internal import Volume

/// Why a directory can't be a volume.
enum VolumeFailure: Error {
  case missing(path: String, Errno)
  case replaced(path: String)
  case noDirectory
  case kind(String)
  case noHandles(String)
  case overlapsStore
  case overlaps(String?)
  case mount(Errno)
  case name
  case nameIsTaken
  case tooMany
  case store(StoreError)

  var message: String {
    switch self {
    case .missing(let path, let error): "\(path) can't be opened: \(error.messageAboutPath)"
    case .replaced(let path): "at \(path) is another directory than the one that was added"
    case .noDirectory: "only a directory can be a volume"
    case .kind(let kind):
      "it lies on \(kind); a volume must lie on a disk of this machine (ext4, xfs, btrfs and the like)"
    case .noHandles(let kind):
      "it lies on \(kind), which has no file handles here; choose a directory on a disk"
    case .overlapsStore: "it holds the store, or lies in it"
    case .overlaps(let name?): "it overlaps with the volume \(name.sanitized)"
    case .overlaps(nil): "it overlaps with another volume"
    case .mount(let error): "it can't be mounted for the daemon: \(error.message)"
    case .name: "its name can't be that of a volume; choose another, of at most 255 bytes, with '--at'"
    case .nameIsTaken: "there is a volume of that name already; choose another with '--at'"
    case .tooMany: "there are too many volumes; eject some first"
    case .store(let error): error.description
    }
  }
}

extension ControlFailure {
  init(_ failure: VolumeFailure, path: String) {
    switch failure {
    case .store(let error): self.init(error)
    case .nameIsTaken: self.init("\(path) can't be a volume: \(failure.message)", .EEXIST)
    case .tooMany: self.init(failure.message, .EDQUOT)
    default: self.init("\(path) can't be a volume: \(failure.message)", .EINVAL)
    }
  }
}

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

  /// Throws for a directory that must not be a volume beside those that there are; `user` is who asks.
  func checkOverlap(_ directory: FD, for user: UInt32) throws(VolumeFailure) {
    if volume.attached.overlapsStore(directory, store.tree) { throw .overlapsStore }
    guard let other = volume.attached.overlapping(directory) else { return }
    throw .overlaps(other.isVisible(to: user) ? String(decoding: other.record.name, as: UTF8.self) : nil)
  }

  /// Throws unless somebody gets to the directory themselves.
  func checkWay(to record: VolumeRecord, for caller: CallerIdentity) throws(VolumeFailure) {
    guard let reader = caller.reader else { return }
    let outcome = Mutex<VolumeFailure?>(nil)
    do {
      try JoinableThread.run(name: "way") {
        try reader.prepareThread()
        do throws(VolumeFailure) {
          try reader.read { () throws(VolumeFailure) in _ = try open(record) }
        } catch {
          outcome.withLock { $0 = error }
        }
      }
    } catch {
      throw .missing(path: String(decoding: record.path, as: UTF8.self).sanitized, .EACCES)
    }
    if let failure = outcome.withLock({ $0 }) { throw failure }
  }

  /// Opens the directory that a record is about; no link leads to it.
  func open(_ record: VolumeRecord) throws(VolumeFailure) -> OwnedFD {
    let path = String(decoding: record.path, as: UTF8.self).sanitized
    do throws(Errno) {
      let opened = try record.path.withName { (path) throws(Errno) in
        try FD.cwd.openWithoutLinks(path, O_DIRECTORY | pathOnly)
      }
      guard ObjectIdentity(try opened.fd.status(), of: opened.fd) == record.identity else { throw .ESTALE }
      return opened
    } catch .ESTALE {
      throw .replaced(path: path)
    } catch {
      throw .missing(path: path, error)
    }
  }

  /// Serves a directory as the volume of a record: in root's store by a mount that nobody else has, so that
  /// nothing that is mounted in it, now or later, is a part of it.
  func attach(_ directory: SharedFD, as record: VolumeRecord) throws(VolumeFailure) {
    do throws(Errno) {
      guard isSystem else {
        return volume.attached.add(try AttachedVolume(record, of: directory, root: directory))
      }
      let limits: DetachedMount.Limits =
        record.isReadOnly ? [.noSetUserID, .noDevices, .readOnly] : [.noSetUserID, .noDevices]
      let mount = try directory.use { (fd) throws(Errno) in try DetachedMount.copy(of: fd, adding: limits) }
      volume.attached.add(try AttachedVolume(record, of: directory, root: SharedFD(mount)))
    } catch {
      throw .mount(error)
    }
  }
}

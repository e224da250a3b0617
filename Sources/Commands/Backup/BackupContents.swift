// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Policy

/// What one backup consists of, put together over the mount point where only this process and restic see it:
/// the manifest, and beside it the view of what is backed up.
///
/// So all of it is in one snapshot, at the same paths each time.
enum BackupContents {
  /// Mounts it, in a namespace of our own.
  ///
  /// `databases` is where databases are that are copied before.
  static func mount(
    _ manifest: BackupManifest, _ request: BackupRequest, withBundlesOf access: (any StoreAccess)?,
    databases: FD?, by daemon: inout RunningDaemon
  ) throws {
    let mountPoint = daemon.mountPoint
    // Before the tree is covered.
    let bundles = try access.map { try Self.bundles(of: manifest, $0) } ?? []
    do throws(Errno) {
      try OwnNamespace.mountMemory(at: mountPoint)
      let top = try FD.cwd.openWithoutLinks(mountPoint, O_RDONLY | O_DIRECTORY)
      for name in [BackupManifest.treeName] + (bundles.isEmpty ? [] : [BackupManifest.bundlesName]) {
        try top.fd.makeDirectory(name, mode: 0o755)
      }
      let file = try top.fd.open(BackupManifest.name, O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
      try file.fd.writeAll(manifest.encoded)
      for bundle in bundles {
        let parent = try top.fd.openDirectory(BackupManifest.bundlesName)
        try bundle.directory.use { (directory) throws(Errno) in
          try show(directory, as: bundle.name, in: parent.fd)
        }
      }
      if let databases { try show(databases, as: BackupManifest.databasesName, in: top.fd) }
      try check(chdir("/"))
    } catch {
      throw CommandFailure(.failed, "can't put the backup together over \(mountPoint): \(error.message)")
    }
    try BackupView.mount(at: "\(mountPoint)/\(BackupManifest.treeName)", request, by: &daemon)
  }

  /// Mounts a directory read-only at a new name.
  private static func show(_ directory: FD, as name: String, in parent: FD) throws(Errno) {
    try parent.makeDirectory(name, mode: 0o755)
    let place = try parent.child(name)
    let copy = try DetachedMount.copy(of: directory, adding: .readOnly)
    try copy.fd.attach(over: place.fd)
  }

  private static func bundles(
    of manifest: BackupManifest, _ access: any StoreAccess
  ) throws -> [(name: String, directory: SharedFD)] {
    var found: [(name: String, directory: SharedFD)] = []
    for app in manifest.apps {
      let path = "\(access.root)/\(app.domain.path)/\(app.bundle)"
      do throws(Errno) {
        let directory = SharedFD(try FD.cwd.openWithoutLinks(path, O_RDONLY | O_DIRECTORY))
        found.append((name: "\(app.seal).app", directory: directory))
      } catch {
        throw CommandFailure(error, "can't open \(path.sanitized): \(error.message)")
      }
    }
    return found
  }
}

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
  /// Mounts it; enters a namespace of our own.
  static func mount(
    _ manifest: BackupManifest, _ request: BackupRequest, withBundlesOf access: (any StoreAccess)?,
    by daemon: inout RunningDaemon
  ) throws {
    let mountPoint = daemon.mountPoint
    try BackupView.enterNamespace()
    // Before the tree is covered, and in the namespace that they are to be mounted in once more.
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
        try parent.fd.makeDirectory(bundle.name, mode: 0o755)
        let place = try parent.fd.child(bundle.name)
        try bundle.directory.use { (directory) throws(Errno) in
          let copy = try DetachedMount.copy(of: directory, adding: .readOnly)
          try copy.fd.attach(over: place.fd)
        }
      }
      try check(chdir("/"))
    } catch {
      throw CommandFailure(.failed, "can't put the backup together over \(mountPoint): \(error.message)")
    }
    try BackupView.mount(at: "\(mountPoint)/\(BackupManifest.treeName)", request, by: &daemon)
  }

  private static func bundles(
    of manifest: BackupManifest, _ access: any StoreAccess
  ) throws -> [(name: String, directory: SharedFD)] {
    var found: [(name: String, directory: SharedFD)] = []
    for app in manifest.apps {
      let above = AppDomain(home: app.home).path
      let path = "\(access.root)/\(above)/\(app.bundle)"
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

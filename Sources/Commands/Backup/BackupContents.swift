// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Policy

/// What one backup consists of, put together over the mount point where only this process and restic see it:
/// the manifest, and beside it the view of what is backed up.
///
/// So all of it is in one snapshot, at the same paths each time. The tree's own directories stay where they
/// are, beside it, and are no part of the snapshot: the home of whoever makes the backup may be in the tree,
/// with the password, restic's cache, and restic itself.
enum BackupContents {
  /// Mounts it, in a namespace of our own.
  ///
  /// `databases` is where databases are that are copied before. The result are the paths there that are not
  /// to be backed up.
  static func mount(
    _ manifest: BackupManifest, _ request: BackupRequest, withBundlesOf access: (any StoreAccess)?,
    databases: FD?, by daemon: inout RunningDaemon
  ) throws -> [String] {
    let mountPoint = daemon.mountPoint
    // Before the tree is covered.
    let domains = try domains(of: mountPoint)
    let bundles = access.map { Self.bundles(of: manifest, $0) } ?? []
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
      for (name, directory) in domains {
        try directory.use { (directory) throws(Errno) in
          try show(directory, as: name, in: top.fd, isWhole: true)
        }
      }
      if let databases { try show(databases, as: BackupManifest.databasesName, in: top.fd) }
      try check(chdir("/"))
    } catch {
      throw CommandFailure(.failed, "can't put the backup together over \(mountPoint): \(error.message)")
    }
    try BackupView.mount(at: "\(mountPoint)/\(BackupManifest.treeName)", request, by: &daemon)
    return domains.map { "\(mountPoint)/\($0.name)" }
  }

  /// Mounts a directory at a new name: if it `isWhole`, as it is, with what is mounted in it; otherwise to be
  /// backed up.
  private static func show(
    _ directory: FD, as name: String, in parent: FD, isWhole: Bool = false
  ) throws(Errno) {
    try parent.makeDirectory(name, mode: 0o755)
    let place = try parent.child(name)
    let copy = try DetachedMount.copy(of: directory, isWhole: isWhole, adding: isWhole ? [] : .readOnly)
    if !isWhole { try BackupView.refuseLinks(in: copy.fd) }
    try copy.fd.attach(over: place.fd)
  }

  /// The directories at the top of the tree.
  private static func domains(of mountPoint: String) throws -> [(name: String, directory: SharedFD)] {
    do throws(Errno) {
      let top = try FD.cwd.openWithoutLinks(mountPoint, O_RDONLY | O_DIRECTORY)
      var found: [(name: String, directory: SharedFD)] = []
      for path in DomainTree.directories.map(\.path) where !path.utf8.contains(UInt8(ascii: "/")) {
        do throws(Errno) {
          found.append((path, SharedFD(try top.fd.open(path, pathOnly | O_DIRECTORY))))
        } catch .ENOENT {}
      }
      return found
    } catch {
      throw CommandFailure(error, "can't open \(mountPoint): \(error.message)")
    }
  }

  /// The bundles of apps, one for each seal.
  ///
  /// What can't be had is left out, and named: apps come and go while a backup is made.
  private static func bundles(
    of manifest: BackupManifest, _ access: any StoreAccess
  ) -> [(name: String, directory: SharedFD)] {
    var found: [String: SharedFD] = [:]
    for app in manifest.apps where found[app.seal] == nil {
      found[app.seal] = bundle(at: "\(access.root)/\(app.domain.path)/\(app.bundle)", sealedAs: app.seal)
    }
    let missing = manifest.apps.filter { found[$0.seal] == nil }.map { "  \($0.identifier.sanitized)" }
    if !missing.isEmpty {
      access.context.console.note(
        "only the data of these apps are backed up, since what is at their places is not, or not any more, "
          + "what was installed:", missing)
    }
    return found.keys.inOrder(by: <).compactMap { seal in found[seal].map { ("\(seal).app", $0) } }
  }

  /// The bundle that has this seal: once it is uninstalled, whose the directory above is can put anything
  /// there.
  static func bundle(at path: String, sealedAs seal: String) -> SharedFD? {
    guard let root = try? FD.cwd.openWithoutLinks(path, O_RDONLY | O_DIRECTORY),
      let bundle = try? CodeBundle(in: root, name: path.splitAtName.name),
      (try? bundle.sealDigest().asHexadecimal) == seal, let directory = try? bundle.root.duplicated()
    else { return nil }
    return SharedFD(directory)
  }
}

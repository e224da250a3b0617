// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Daemon
internal import Glibc
internal import LinuxIO

/// The read-only view of what is backed up, where only this process and those that it starts see it.
enum BackupView {
  /// Enters a namespace of mounts of our own, as must come before a view is mounted.
  static func enterNamespace() throws(CommandFailure) {
    do throws(Errno) {
      try OwnNamespace.enterMounts()
    } catch {
      throw CommandFailure(.failed, Bubblewrap.withoutNamespaces(error))
    }
  }

  /// Has the view served, and mounts it over a directory.
  static func mount(at path: String, _ request: BackupRequest, by daemon: inout RunningDaemon) throws {
    let connection = daemon.isRootless ? try mountOwn(at: path) : nil
    let mount = try daemon.beginBackup(request, over: connection)
    do throws(Errno) {
      let place = try FD.cwd.open(path, pathOnly | O_DIRECTORY)
      if let mount {
        try mount.use { (mount) throws(Errno) in
          try mount.attach(over: place.fd)
          try refuseLinks(in: mount)
        }
      } else {
        try DetachedMount.change(place.fd, adding: .readOnly)
        try refuseLinks(in: place.fd)
      }
    } catch {
      throw CommandFailure(.failed, "can't mount the view over \(path): \(error.message)")
    }
  }

  /// Sees to it that links in a mount can be read, and that nobody follows them.
  ///
  /// Programs that back up go by paths, and may read what others can't. A directory that becomes a link while
  /// they are at it would lead them to anything, and they would keep that under the directory's name.
  static func refuseLinks(in mount: FD) throws(Errno) {
    do throws(Errno) { try DetachedMount.change(mount, adding: .noLinks) } catch {
      // Linux before 5.14 does not know that.
      guard error == .EINVAL || error == .ENOSYS else { throw error }
    }
  }

  /// Mounts it ourselves, as ordinary users may in a namespace of their own.
  private static func mountOwn(at path: String) throws -> SharedFD {
    do throws(Errno) {
      let place = try FD.cwd.open(path, pathOnly | O_DIRECTORY)
      return SharedFD(try OwnView.mount(over: place.fd, source: "insula"))
    } catch {
      throw CommandFailure(
        .failed,
        error == .EACCES || error == .ENOENT
          ? "can't open /dev/fuse: \(error.message); all users must be able to open it to back up a rootless "
            + "store (run 'chmod 0666 /dev/fuse' as root)"
          : "can't mount the view: \(error.message); see 'insula doctor'")
    }
  }
}

extension DetachedMount.Limits {
  /// Corresponds to `MOUNT_ATTR_NOSYMFOLLOW`.
  fileprivate static let noLinks = Self(rawValue: 0x20_0000)
}

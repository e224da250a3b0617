// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

/// The directory on which a store is to be seen.
struct MountPoint {
  /// What the kernel calls our mounts.
  static let filesystemType = "fuse.insula"

  let path: String
  private let isDefault: Bool

  /// `path` is absolute.
  init(_ path: String, isDefault: Bool) {
    self.path = path
    self.isDefault = isDefault
  }

  /// Makes sure that it can be mounted on; clears away what a killed daemon has left there.
  func prepare(allowingNonEmpty: Bool, store: String, _ context: Context) throws {
    guard !Self.overlap(path, store) else {
      throw CommandFailure(
        .failed,
        "the mount point \(path) and the store \(store) overlap; choose another mount point")
    }
    try clearDeadMounts(context)
    if isDefault { try make(context) }
    let entries = try look(context)
    guard allowingNonEmpty || entries == 0 else {
      let what = entries == 1 ? "its entry" : "its \(entries) entries"
      throw CommandFailure(
        .failed,
        "the mount point \(path) is not empty, and a mount would hide \(what); "
          + "choose an empty directory, or hide them with '-o nonempty'")
    }
  }

  /// Takes away mounts of ours that no daemon serves any more; refuses all others.
  private func clearDeadMounts(_ context: Context) throws {
    // One dead mount may lie over another.
    for _ in 0..<16 {
      guard let mount = try MountTable.current().top(at: path) else { return }
      guard mount.type == Self.filesystemType, Self.isDead(path) else {
        throw CommandFailure(
          .busy,
          "the mount point \(path) is in use: \(mount.source) (\(mount.type)) is mounted there; "
            + (mount.type == Self.filesystemType
              ? "unmount it with 'insula unmount \(path)'"
              : "choose another directory, or run 'umount \(path)' first"))
      }
      try Unmounting.detach(mount, context)
      context.console.inform("removed a dead mount from \(path) (its daemon was killed)")
    }
  }

  /// Whether the daemon of the mount at `path` is gone; one that does not answer is not.
  static func isDead(_ path: String) -> Bool {
    // Whoever looks at a mount waits for its daemon, which may have been stopped.
    JoinableThread.result(name: "look", milliseconds: 5000) { saysThatItIsDead(path) } == true
  }

  private static func saysThatItIsDead(_ path: String) -> Bool {
    do throws(Errno) {
      let directory = try FD.cwd.open(path, O_RDONLY | O_DIRECTORY)
      _ = try directory.fd.status()
      return false
    } catch {
      return error == .ENOTCONN || error == .ECONNABORTED
    }
  }

  private func make(_ context: Context) throws {
    do throws(Errno) {
      try FD.cwd.makeDirectory(path, mode: 0o755)
      let made = try FD.cwd.open(path, O_RDONLY | O_DIRECTORY)
      try made.fd.changeMode(0o755)
      context.console.inform("created the mount point \(path)")
    } catch {
      guard error != .EEXIST else { return }
      throw CommandFailure(.failed, "can't create the mount point \(path): \(error.message)")
    }
  }

  /// How many entries it has.
  private func look(_ context: Context) throws -> Int {
    do throws(Errno) {
      let entries = try path.withName { (name) throws(Errno) in
        let directory = try FD.cwd.open(name, O_RDONLY | O_DIRECTORY)
        return try directory.fd.entries()
      }
      if !context.isRoot { try path.withName { (name) throws(Errno) in try checkWritable(name) } }
      return entries.count
    } catch {
      switch error {
      case .ENOENT:
        throw CommandFailure(
          .failed, "the mount point \(path) does not exist; create it with 'mkdir \(path)'")
      case .ENOTDIR, .ELOOP:
        throw CommandFailure(.failed, "the mount point \(path) is not a directory; choose a directory")
      case .EACCES, .EPERM, .EROFS:
        throw CommandFailure(
          .notPermitted,
          "the mount point \(path) can't be used: \(error.message); "
            + "choose a directory of your own, such as \(context.defaultMountPoint)")
      default:
        throw CommandFailure(.failed, "the mount point \(path) can't be used: \(error.message)")
      }
    }
  }

  /// fusermount3 mounts only where the user may write.
  private func checkWritable(_ name: Name) throws(Errno) {
    try check(access(name.bytes, W_OK))
  }

  private static func overlap(_ one: String, _ other: String) -> Bool {
    one == other || one.begins(with: other + "/") || other.begins(with: one == "/" ? "/" : one + "/")
  }
}

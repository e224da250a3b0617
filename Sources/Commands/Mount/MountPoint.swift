// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Policy

/// The directory on which a store is to be seen.
struct MountPoint {
  /// What the kernel calls our mounts.
  static let filesystemType = MountEntry.servedType

  let path: String
  private let isDefault: Bool

  /// `path` is absolute.
  init(_ path: String, isDefault: Bool) {
    self.path = path
    self.isDefault = isDefault
  }

  /// The path of the mount point that a person named, without links: what its own links say, and nobody
  /// else's.
  ///
  /// All that is done with it afterwards follows no link.
  static func place(of named: String, _ context: Context) throws(CommandFailure) -> String {
    var named = named
    while named.count > 1, named.ends(with: "/") { named.removeLast() }
    do throws(Errno) {
      let found = try context.openWithoutOthersLinks(named)
      return String(decoding: try found.fd.ownPath(), as: UTF8.self)
    } catch .ELOOP {
      throw CommandFailure(
        .notPermitted,
        "the mount point \(named.sanitized) can't be used: a symbolic link of another user's is on the way, "
          + "who could have it lead to any directory; name the directory that is meant")
    } catch {}
    // It may have to be made, or what is wrong with it is said later on.
    let path = context.unresolved(named)
    let (above, name) = path.splitAtName
    guard !name.isEmpty, name != "..", name != ".",
      let parent = try? context.openWithoutOthersLinks("/\(above)"), let place = try? parent.fd.ownPath()
    else { return path }
    let real = String(decoding: place, as: UTF8.self)
    return real == "/" ? "/\(name)" : "\(real)/\(name)"
  }

  /// Makes sure that it can be mounted on, and opens it; clears away what a killed daemon has left there.
  func prepare(allowingNonEmpty: Bool, store: String, _ context: Context) throws -> OwnedFD {
    guard !Self.overlap(path, store) else {
      throw CommandFailure(
        .failed,
        "the mount point \(path) and the store \(store) overlap; choose another mount point")
    }
    try clearDeadMounts(context)
    #if DEBUG
      Halt.at(.mountPointFound)
    #endif
    if isDefault { try make(context) }
    let directory = try open(context)
    let entries: Int
    do throws(Errno) { entries = try directory.fd.entries().count } catch { throw failure(error, context) }
    guard allowingNonEmpty || entries == 0 else {
      let what = entries == 1 ? "its entry" : "its \(entries) entries"
      throw CommandFailure(
        .failed,
        "the mount point \(path) is not empty, and a mount would hide \(what); "
          + "choose an empty directory, or hide them with '-o nonempty'")
    }
    return directory
  }

  /// Takes away mounts of ours that no daemon serves any more; refuses all others.
  private func clearDeadMounts(_ context: Context) throws {
    // One dead mount may lie over another.
    for _ in 0..<16 {
      guard let mount = try MountTable.current().top(at: path) else { return }
      guard mount.isServed, Self.isDead(path) else {
        throw CommandFailure(
          .busy,
          "the mount point \(path) is in use: \(mount.source) (\(mount.type)) is mounted there; "
            + (mount.isServed
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
      let (above, name) = path.splitAtName
      let parent = try FD.cwd.openWithoutLinks("/\(above)", pathOnly | O_DIRECTORY)
      let made = try name.withName { (name) throws(Errno) in try parent.fd.makeAndOpenDirectory(name) }
      try made.fd.changeMode(0o755)
      context.console.inform("created the mount point \(path)")
    } catch {
      guard error != .EEXIST else { return }
      throw CommandFailure(.failed, "can't create the mount point \(path): \(error.message)")
    }
  }

  /// Opens the directory, once: it is this one that is looked at and mounted on.
  private func open(_ context: Context) throws -> OwnedFD {
    do throws(Errno) {
      let directory = try FD.cwd.openWithoutLinks(path, O_RDONLY | O_DIRECTORY)
      // fusermount3 mounts only where the user may write.
      if !context.isRoot { try directory.fd.checkAccess(".", .write) }
      return directory
    } catch {
      throw failure(error, context)
    }
  }

  private func failure(_ error: Errno, _ context: Context) -> CommandFailure {
    switch error {
    case .ENOENT:
      CommandFailure(.failed, "the mount point \(path) does not exist; create it with 'mkdir \(path)'")
    case .ENOTDIR:
      CommandFailure(.failed, "the mount point \(path) is not a directory; choose a directory")
    case .ELOOP:
      CommandFailure(
        .failed, "a symbolic link has come to be on the way to the mount point \(path); try again")
    case .EACCES, .EPERM, .EROFS:
      CommandFailure(
        .notPermitted,
        "the mount point \(path) can't be used: \(error.message); "
          + "choose a directory of your own, such as \(context.defaultMountPoint)")
    default:
      CommandFailure(.failed, "the mount point \(path) can't be used: \(error.message)")
    }
  }

  private static func overlap(_ one: String, _ other: String) -> Bool {
    one == other || one.begins(with: other + "/") || other.begins(with: one == "/" ? "/" : one + "/")
  }
}

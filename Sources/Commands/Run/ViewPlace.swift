// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Daemon
internal import Glibc
internal import LinuxIO

/// Where we put together what the sandbox is made of: a directory in memory, in a mount namespace that nobody else sees.
///
/// Nothing in it can be run, but what ``allowPrograms(in:)`` names.
struct ViewPlace {
  /// Hides what every machine has there; nothing of that is used any more.
  private static let path = "/tmp"
  let view = path + "/view"
  /// For the app to share memory through.
  let shared = path + "/shared"
  /// Where there is no other place for temporary files.
  let temporary = path + "/temporary"
  let files = path + "/files"

  /// Enters namespaces of our own must have come before.
  init() throws {
    do throws(Errno) {
      try OwnNamespace.mountMemory(at: Self.path)
      for (name, mode) in [(view, 0o755), (files, 0o755), (shared, 0o1777), (temporary, 0o1777)] {
        try FD.cwd.makeDirectory(name, mode: FileMode(mode))
        let made = try FD.cwd.open(name, O_RDONLY | O_DIRECTORY)
        try made.fd.changeMode(FileMode(mode))
      }
    } catch {
      throw CommandFailure(.failed, "can't mount in a namespace of our own: \(error.message)")
    }
  }

  /// Mounts a view ourselves, as ordinary users may in a namespace of their own; gives the connection for the daemon.
  func mountOwn(source: String) throws -> OwnedFD {
    do throws(Errno) {
      let directory = try FD.cwd.open(view, pathOnly | O_DIRECTORY)
      return try OwnView.mount(over: directory.fd, source: source)
    } catch {
      throw CommandFailure(
        .failed,
        error == .EACCES || error == .ENOENT
          ? "can't open /dev/fuse: \(error.message); apps of a rootless store need it to be open to everyone ('chmod 0666 /dev/fuse' as root, as udev has it)"
          : "can't mount a view: \(error.message); 'insula doctor' may say why")
    }
  }

  /// Puts the view in its place.
  func attach(_ mount: SharedFD) throws {
    do throws(Errno) {
      let directory = try FD.cwd.open(view, pathOnly | O_DIRECTORY)
      try mount.use { (mount) throws(Errno) in try mount.attach(over: directory.fd) }
    } catch {
      throw CommandFailure(.failed, "can't put the view in its place: \(error.message)")
    }
  }

  /// Lets programs be run in some places of the view, or in all of it.
  func allowPrograms(in places: [String]?) throws {
    do throws(Errno) {
      let root = try FD.cwd.open(view, pathOnly | O_DIRECTORY)
      for place in places ?? [""] {
        let directory = try Self.find(place, below: root.fd)
        let copy = try DetachedMount.copy(of: directory.fd, removing: .noPrograms)
        try copy.fd.attach(over: directory.fd)
      }
    } catch {
      throw CommandFailure(.failed, "can't let the app's programs run: \(error.message)")
    }
  }

  /// Names a directory of the view, without the requests that opening it would cost.
  private static func find(_ path: String, below root: FD) throws(Errno) -> OwnedFD {
    var directory = try root.duplicated()
    for name in path.split(separator: "/").map(String.init) { directory = try directory.fd.child(name) }
    return directory
  }

  func write(_ files: SandboxFiles) throws {
    for (name, text) in files.all {
      do throws(Errno) {
        let path = "\(self.files)/\(name)"
        let file = try FD.cwd.open(path, O_WRONLY | O_CREAT | O_EXCL, mode: 0o644)
        try file.fd.changeMode(0o644)
        try file.fd.writeAll(text.utf8)
      } catch {
        throw CommandFailure(.failed, "can't write \(name) for the sandbox: \(error.message)")
      }
    }
  }
}

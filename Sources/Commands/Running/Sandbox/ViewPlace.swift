// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Daemon
internal import Glibc
internal import LinuxIO

/// Where we put together what the sandbox is made of: a directory in memory, in a mount namespace that nobody
/// else sees, and that has no other mounts than what the sandbox takes.
///
/// Nothing in it can be run, but what ``tree(running:leftOut:)`` names.
struct ViewPlace {
  /// The machine's programs and ours may lie below every name that people give, so it is none of those.
  private static let path = "/.sandbox"
  let view = path + "/view"
  /// For the app to share memory through.
  let shared = path + "/shared"
  /// Where there is no other place for temporary files.
  let temporary = path + "/temporary"
  let files = path + "/files"
  /// In which the app's socket is.
  let socket = path + "/socket"

  /// Enters namespaces of our own must have come before.
  init(bubblewrap: String, _ program: OwnProgram) throws {
    do throws(Errno) {
      try OwnNamespace.leaveTree(
        keeping: Sandbox.places, files: [bubblewrap] + program.elsewhere + Sandbox.targetsElsewhere,
        hiding: MountPoint.filesystemType)
      try FD.cwd.makeDirectory(Self.path, mode: 0o755)
      for (name, mode) in [
        (view, 0o755), (files, 0o755), (socket, 0o755), (shared, 0o1777), (temporary, 0o1777),
      ] {
        try FD.cwd.makeDirectory(name, mode: FileMode(mode))
        let made = try FD.cwd.open(name, O_RDONLY | O_DIRECTORY)
        try made.fd.changeMode(FileMode(mode))
      }
    } catch {
      throw CommandFailure(.failed, "can't mount in the new namespace: \(error.message)")
    }
  }

  /// Mounts a view ourselves, as ordinary users may in a namespace of their own; gives the connection for the
  /// daemon.
  func mountOwn(source: String) throws -> OwnedFD {
    do throws(Errno) {
      let directory = try FD.cwd.open(view, pathOnly | O_DIRECTORY)
      return try OwnView.mount(over: directory.fd, source: source)
    } catch {
      throw CommandFailure(
        .failed,
        error == .EACCES || error == .ENOENT
          ? "can't open /dev/fuse: \(error.message); all users must be able to open it to run "
            + "apps of a rootless store (run 'chmod 0666 /dev/fuse' as root)"
          : "can't mount the app's view: \(error.message); see 'insula doctor'")
    }
  }

  /// Sees to it that nothing is changed through a view that we have mounted before we knew.
  func makeViewReadOnly() throws {
    do throws(Errno) {
      let mount = try FD.cwd.open(view, pathOnly | O_DIRECTORY)
      try DetachedMount.change(mount.fd, adding: .readOnly)
    } catch {
      throw CommandFailure(.failed, "can't make the app's view read-only: \(error.message)")
    }
  }

  /// Limits what the app keeps in files in memory.
  func limit(memory bytes: Int64) throws {
    do throws(Errno) {
      try OwnNamespace.limitMemory(at: "/", to: bytes)
    } catch {
      throw CommandFailure(.failed, "can't limit the app's files in memory: \(error.message)")
    }
  }

  /// Puts the view in its place.
  func attach(_ mount: SharedFD) throws { try attach(mount, over: view, "view") }

  /// Puts the directory with the app's socket in its place.
  func attach(socket mount: SharedFD) throws { try attach(mount, over: socket, "socket") }

  /// Makes the app's socket ourselves.
  func listen() throws(Errno) -> OwnedFD {
    let directory = try FD.cwd.open(socket, pathOnly | O_DIRECTORY)
    return try AppSocket.listen(in: directory.fd)
  }

  private func attach(_ mount: SharedFD, over path: String, _ what: String) throws {
    do throws(Errno) {
      let directory = try FD.cwd.open(path, pathOnly | O_DIRECTORY)
      try mount.use { (mount) throws(Errno) in try mount.attach(over: directory.fd) }
    } catch {
      throw CommandFailure(.failed, "can't move the app's \(what) to its path: \(error.message)")
    }
  }

  /// Makes the tree that the app will see, in which programs can be run in some places, or, without any being
  /// named, everywhere; gives its path.
  ///
  /// The kernel forgets what is mounted in a directory of a view whenever it looks that up again. So nothing
  /// is mounted in the view: the directories that lead to those places are ours, and all that the view has in
  /// them is mounted there, with rights of its own. `leftOut` gets what is in the view and not there just
  /// now, as what was granted on a disk that is away.
  func tree(running places: [String]?, leftOut: inout [(path: String, why: Errno)]) throws -> String {
    let tree = Self.path + "/tree"
    do throws(Errno) {
      try FD.cwd.makeDirectory(tree, mode: 0o755)
      let from = try FD.cwd.open(view, pathOnly | O_DIRECTORY)
      let to = try FD.cwd.open(tree, pathOnly | O_DIRECTORY)
      if let places {
        try Self.fill(
          to.fd, from: from.fd, running: places.map { $0.parts(between: "/")[...] }, at: "", &leftOut)
      } else {
        let copy = try DetachedMount.copy(of: from.fd, removing: .noPrograms)
        try copy.fd.attach(over: to.fd)
      }
    } catch {
      throw CommandFailure(.failed, "can't prepare the app's view: \(error.message)")
    }
    return tree
  }

  /// `places` are below that directory.
  private static func fill(
    _ directory: FD, from source: FD, running places: [ArraySlice<Substring>], at path: String,
    _ leftOut: inout [(path: String, why: Errno)]
  ) throws(Errno) {
    let listing = try source.open(Name.here, O_RDONLY | O_DIRECTORY)
    for entry in try listing.fd.entries() {
      let meant = places.filter { $0.first?.utf8.elementsEqual(entry.name) == true }
      let below = path + "/" + String(decoding: entry.name, as: UTF8.self)
      func leaveOut(_ error: Errno) throws(Errno) {
        guard error != .ENOENT else { return }
        guard Self.isAway(error) else { throw error }
        leftOut.append((below, error))
      }
      let object: OwnedFD
      do throws(Errno) { object = try source.child(entry.name) } catch {
        try leaveOut(error)
        continue
      }
      let status: FileStatus
      do throws(Errno) { status = try object.fd.status() } catch {
        try leaveOut(error)
        continue
      }
      if status.isSymlink {
        try directory.makeSymlink(entry.name, to: object.fd.linkTarget())
        continue
      }
      if status.isDirectory {
        try directory.makeDirectory(entry.name, mode: 0o755)
      } else {
        _ = try directory.open(entry.name, O_WRONLY | O_CREAT | O_EXCL, mode: 0o644)
      }
      let place = try directory.child(entry.name)
      let deeper = meant.map { $0.dropFirst() }
      if deeper.isEmpty || deeper.contains(where: \.isEmpty) {
        let copy = try DetachedMount.copy(of: object.fd, removing: deeper.isEmpty ? [] : .noPrograms)
        try copy.fd.attach(over: place.fd)
      } else {
        try fill(place.fd, from: object.fd, running: deeper, at: below, &leftOut)
      }
    }
  }

  /// Whether an error says that a disk or a server is not there, or does not answer.
  private static func isAway(_ error: Errno) -> Bool {
    [.ENOMEDIUM, .EIO, .ESTALE, .ETIMEDOUT].contains(error)
  }

  func write(_ files: [(name: String, text: String)]) throws {
    for (name, text) in files { try write(Array(text.utf8), to: name) }
  }

  func write(_ bytes: [UInt8], to name: String) throws { try write(bytes, at: "\(files)/\(name)") }

  /// Writes a file that is outside of what the sandbox takes, unless its path is there too.
  func write(_ bytes: [UInt8], at path: String) throws {
    do throws(Errno) {
      let file = try FD.cwd.open(path, O_WRONLY | O_CREAT | O_EXCL, mode: 0o644)
      try file.fd.changeMode(0o644)
      try file.fd.writeAll(bytes)
    } catch {
      throw CommandFailure(.failed, "can't write \(path) for the sandbox: \(error.message)")
    }
  }

  /// Gives a mount of a single file a place beside the files that we write; the path of it.
  func attach(_ mount: SharedFD, as name: String) throws -> String {
    try write([], to: name)
    return try cover(name, with: mount)
  }

  /// The same for a mount of a directory.
  func attachDirectory(_ mount: SharedFD, as name: String) throws -> String {
    do throws(Errno) {
      try FD.cwd.makeDirectory("\(files)/\(name)", mode: 0o755)
    } catch {
      throw CommandFailure(.failed, "can't make \(name) for the sandbox: \(error.message)")
    }
    return try cover(name, with: mount)
  }

  private func cover(_ name: String, with mount: SharedFD) throws -> String {
    let path = "\(files)/\(name)"
    do throws(Errno) {
      let place = try FD.cwd.open(path, pathOnly)
      try mount.use { (mount) throws(Errno) in try mount.attach(over: place.fd) }
    } catch {
      throw CommandFailure(.failed, "can't mount \(name) for the sandbox: \(error.message)")
    }
    return path
  }
}

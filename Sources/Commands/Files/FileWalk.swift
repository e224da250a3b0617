// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

/// Goes through the files that a person named, and on after one that fails.
struct FileWalk {
  /// What was found: valid during the call that it is passed to.
  struct Object {
    /// Names the object without access to its contents.
    let fd: FD
    /// For messages.
    let path: String
    let status: FileStatus
  }

  let context: Context
  /// How many have failed.
  private(set) var failures = 0
  /// What was told last, so that the visit and the way on don't tell the same.
  private var lastWords = ""

  init(_ context: Context) { self.context = context }

  /// How a command ends that has done this.
  var exitCode: ExitCode { failures == 0 ? .ok : .failed }

  /// Takes over what went wrong on another walk.
  mutating func add(_ other: FileWalk) { failures += other.failures }

  /// Tells what went wrong with a file.
  mutating func report(_ path: String, _ error: any Error) {
    failures += 1
    let failure = CommandFailure(error)
    let words = "\(path): \(failure.message)"
    if words != lastWords { context.console.note(CommandFailure(failure.code, words, lines: failure.lines)) }
    lastWords = words
  }

  /// Visits what was named, and recursively what is below; each directory comes before what it holds.
  ///
  /// Only a link that was named is followed, or visited itself; those that are come upon are passed over.
  /// What was named and can't be looked at is visited too where that is said to be no matter, and passes for
  /// a file then.
  mutating func visit(
    _ paths: [String], recursively: Bool, followingLinks: Bool, looking: Bool = true,
    _ body: (Object) throws -> Void
  ) {
    for path in paths {
      do {
        let named = try context.openToName(path, followingLinks: followingLinks)
        let object = Object(fd: named.fd, path: path, status: try status(named.fd, looking: looking))
        attempt(object, body)
        if recursively && object.status.isDirectory { try descend(object, body) }
      } catch {
        report(path, error)
      }
    }
  }

  private func status(_ object: FD, looking: Bool) throws(Errno) -> FileStatus {
    do throws(Errno) {
      return try object.status()
    } catch .EACCES where !looking {
      return FileStatus()
    }
  }

  private mutating func attempt(_ object: Object, _ body: (Object) throws -> Void) {
    do { try body(object) } catch { report(object.path, error) }
  }

  /// A directory on the way, by what tells it from all others.
  private struct Level {
    let device: UInt64
    let inode: UInt64
    let path: String
    var names: ArraySlice<[UInt8]>
  }

  /// Visits all below a directory with two descriptors, however deep it goes: the way back is "..", which
  /// must lead to the directory that we came from.
  private mutating func descend(_ start: Object, _ body: (Object) throws -> Void) throws {
    var here = try start.fd.duplicated()
    var levels = [try level(start)]
    while var level = levels.popLast() {
      guard let name = level.names.popFirst() else {
        guard let parent = levels.last else { return }
        here = try ascend(from: here.fd, to: parent)
        continue
      }
      let path = level.path + (level.path.ends(with: "/") ? "" : "/") + String(decoding: name, as: UTF8.self)
      levels.append(level)
      do {
        let child = try here.fd.open(name, pathOnly)
        let found = Object(fd: child.fd, path: path, status: try child.fd.status())
        guard !found.status.isSymlink else { continue }
        attempt(found, body)
        guard found.status.isDirectory else { continue }
        let next = try child.fd.duplicated()
        levels.append(try self.level(found))
        here = next
      } catch {
        report(path, error)
      }
    }
  }

  private func level(_ directory: Object) throws(Errno) -> Level {
    let reading = try directory.fd.reopened(O_RDONLY | O_DIRECTORY)
    let names = try reading.fd.entries().map(\.name).inOrder { $0.lexicographicallyPrecedes($1) }
    return Level(
      device: UInt64(directory.status.st_dev), inode: UInt64(directory.status.st_ino), path: directory.path,
      names: names[...])
  }

  private func ascend(from directory: FD, to level: Level) throws -> OwnedFD {
    let parent = try directory.open("..", pathOnly | O_DIRECTORY)
    let status = try parent.fd.status()
    guard UInt64(status.st_dev) == level.device, UInt64(status.st_ino) == level.inode else {
      throw CommandFailure(.failed, "a directory in it was moved meanwhile; the rest was not processed")
    }
    return parent
  }
}

extension FileWalk.Object {
  /// For commands that change whole trees, but nothing that a link leads to.
  func requireNoLink() throws(CommandFailure) {
    guard status.isSymlink else { return }
    throw CommandFailure(.failed, "is a symbolic link, which -R does not follow")
  }
}

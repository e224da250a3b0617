// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Policy

// Files that a person names on the command line; `-` is what is piped.

extension Context {
  /// All of a file; one that is longer than `limit` is refused.
  func contents(of path: String, limit: Int) throws -> [UInt8] {
    let bytes: [UInt8]
    if path == "-" {
      bytes = try input(limit + 1)
    } else {
      let file = try openToRead(path)
      do throws(Errno) { bytes = try file.fd.readToEnd(limit: limit + 1) } catch {
        throw CommandFailure(error, "can't read \(path.sanitized): \(error.messageAboutPath)")
      }
    }
    guard bytes.count <= limit else {
      throw CommandFailure(.failed, "\(path) is too long for this use: the limit is \(limit) bytes")
    }
    return bytes
  }

  /// Opens what a person names, to read it.
  ///
  /// Not only files: `<(...)` of a shell is a pipe. But a pipe with a name is none of a shell's, anybody may
  /// have put it there, and whoever opens it waits for somebody to write to it.
  func openToRead(_ path: String) throws(CommandFailure) -> OwnedFD {
    do throws(Errno) {
      let file = try FD.cwd.openFollowing(reachable(path), O_RDONLY | O_NONBLOCK | O_NOCTTY)
      let isPipe = try file.fd.status().type == S_IFIFO
      let hasNoName = isPipe ? try file.fd.filesystemKind() == .pipes : false
      if !isPipe || hasNoName {
        try file.fd.setBlocking()
        return file
      }
    } catch {
      throw CommandFailure(error, "can't open \(path.sanitized): \(error.messageAboutPath)")
    }
    throw CommandFailure(
      .failed,
      "\(path.sanitized) is a named pipe, to which nobody might write; give a regular file instead")
  }

  /// Makes a file that was not there; `-` is standard output.
  func write(_ bytes: [UInt8], toNew path: String, mode: UInt32) throws {
    if path == "-" { return console.print(exactly: bytes) }
    do throws(Errno) {
      try withParent(of: path) { (parent, name) throws(Errno) in
        let file = try parent.open(name, O_WRONLY | O_CREAT | O_EXCL, mode: mode)
        do throws(Errno) {
          try file.fd.writeAll(bytes)
          try file.fd.synchronize(dataOnly: false)
        } catch {
          try? parent.remove(name, directory: false)
          throw error
        }
      }
    } catch {
      let why = error == .EEXIST ? "it already exists; nothing was changed" : Self.words(ofMaking: error)
      throw CommandFailure(error, "can't write \(path): \(why)")
    }
  }

  /// Makes a file that was not there of what `body` writes; it gets its name when all of that is in it.
  func write(toNew path: String, mode: UInt32, _ body: (FD) throws -> Void) throws {
    var failure: (any Error)?
    do throws(Errno) {
      try withParent(of: path) { (parent, name) throws(Errno) in
        if parent.has(name) { throw .EEXIST }
        let file: OwnedFD
        var isNamed = false
        do throws(Errno) { file = try parent.openUnnamed(O_WRONLY, mode: mode) } catch {
          // Not every filesystem has files without names.
          guard [.EOPNOTSUPP, .EISDIR, .EINVAL].contains(error) else { throw error }
          file = try parent.open(name, O_WRONLY | O_CREAT | O_EXCL, mode: mode)
          isNamed = true
        }
        do {
          try body(file.fd)
          try file.fd.synchronize(dataOnly: false)
          if !isNamed { try file.fd.link(into: parent, as: name) }
        } catch {
          if isNamed { try? parent.remove(name, directory: false) }
          guard let errno = error as? Errno else { return failure = error }
          throw errno
        }
      }
    } catch {
      let why = error == .EEXIST ? "it already exists; nothing was changed" : Self.words(ofMaking: error)
      throw CommandFailure(error, "can't write \(path.sanitized): \(why)")
    }
    if let failure { throw failure }
  }

  /// Whether there is a file by that path; true where nobody can tell.
  func mayBeThere(_ path: String) -> Bool {
    do throws(Errno) {
      _ = try openToName(path, followingLinks: false)
      return true
    } catch {
      return error != .ENOENT && error != .ENOTDIR
    }
  }

  /// Refuses a word that orders a change and is the name of a file here as well.
  ///
  /// A shell puts the names of files in the place of `*`. Whoever may make names in a directory would decide
  /// what others change there.
  func requireNoFile(
    named word: String, which kind: String = "a change", _ description: CommandDescription
  ) throws(UsageError) {
    guard mayBeThere(word) else { return }
    throw description.error(
      "'\(word)' is \(kind), and the name of a file here; write './\(word)' for the file, "
        + "or make the change from another directory")
  }

  /// The same for the options of a change: those of chmod end at the first file, and ours may come anywhere.
  func requireNoFiles(
    namedAs options: [String], _ description: CommandDescription
  ) throws(UsageError) {
    for word in options { try requireNoFile(named: word, which: "an option", description) }
  }

  /// Names what a person means by a path, without opening it.
  func openToName(_ path: String, followingLinks: Bool) throws(Errno) -> OwnedFD {
    try reachable(path).withName { (name) throws(Errno) in
      followingLinks ? try FD.cwd.openFollowing(name, pathOnly) : try FD.cwd.open(name, pathOnly)
    }
  }

  /// Opens what a path leads to that an app is to be given, and finds out where that is.
  ///
  /// Whoever judges something by its path and goes on with it must go on with this object: others may have
  /// put something else there meanwhile.
  func find(_ path: String) throws(CommandFailure) -> FoundObject {
    do throws(Errno) {
      let object: OwnedFD
      do throws(Errno) { object = try TrustedLinks.open(reachable(path)) } catch .ELOOP {
        // What leads nowhere is said by the system.
        _ = try openToName(path, followingLinks: true)
        throw .ELOOP
      }
      let status = try object.fd.status()
      guard status.st_nlink > 0 else { throw .ENOENT }
      let place = String(decoding: try object.fd.ownPath(), as: UTF8.self)
      return FoundObject(object: SharedFD(object), path: place, status: status)
    } catch {
      if error == .ELOOP, let target = TrustedLinks.target(of: reachable(path)) {
        throw CommandFailure(
          error,
          "\(path.sanitized) leads through a symbolic link, which an app or another user may have made, to "
            + "\(target.sanitized); name that if it is meant")
      }
      throw CommandFailure(error, "can't find \(path.sanitized): \(error.messageAboutPath)")
    }
  }

  /// Opens a directory.
  func openDirectory(_ path: String) throws(CommandFailure) -> OwnedFD {
    do throws(Errno) { return try FD.cwd.openFollowing(reachable(path), O_RDONLY | O_DIRECTORY) } catch {
      let why = error == .ENOTDIR ? "it is not a directory; check the path" : error.messageAboutPath
      throw CommandFailure(error, "can't open \(path.sanitized): \(why)")
    }
  }

  /// What a path is called: its last name, whatever the path is relative to.
  func name(of path: String) -> String { absolute(path).splitAtName.name }

  /// Opens a directory that a person named, to make something in it.
  ///
  /// ELOOP if another user's link is on the way: who made that would decide where it goes, also to where they
  /// may not write.
  func openToMake(in path: String, _ flags: Int32 = O_RDONLY) throws(Errno) -> OwnedFD {
    let directory = try openWithoutOthersLinks(path)
    return try directory.fd.reopened(flags | O_DIRECTORY)
  }

  /// Names what a path leads to, which is not asked anything; ELOOP as for ``openToMake(in:_:)``.
  func openWithoutOthersLinks(_ path: String) throws(Errno) -> OwnedFD {
    try PathWalk.open(reachable(path)) { (step) throws(Errno) in
      guard case .link(_, let status) = step else { return }
      let isTrusted = [0, ProcessID.user].contains(status.st_uid) || ProcessID.isUnmapped(status.st_uid)
      guard isTrusted else { throw .ELOOP }
    }
  }

  /// The same; the directories on the way that are missing are made, as their maker's alone.
  func openToMake(making path: String) throws(Errno) -> OwnedFD {
    do throws(Errno) { return try openToMake(in: path) } catch {
      let (above, name) = path.splitAtName
      guard error == .ENOENT, path.begins(with: "/"), !name.isEmpty else { throw error }
      let parent = try openToMake(making: "/" + above)
      return try parent.fd.openDirectory(name, makingWith: 0o700)
    }
  }

  /// The same for a command that has nothing else to say about it.
  func openDirectoryToMake(in path: String) throws(CommandFailure) -> OwnedFD {
    do throws(Errno) { return try openToMake(in: path) } catch {
      throw CommandFailure(error, "can't open \(path.sanitized): \(Self.words(ofMaking: error))")
    }
  }

  /// Why nothing could be made there.
  static func words(ofMaking error: Errno) -> String {
    error == .ELOOP
      ? "a symbolic link of another user's is on the way; name the directory that is meant"
      : error.messageAboutPath
  }

  /// Opens the directory that something new is to be made in.
  func withParent<Result: ~Copyable>(
    of path: String, _ body: (FD, Name) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    let full = reachable(path)
    let end = full.utf8.lastIndex(of: UInt8(ascii: "/"))
    let last = end.map { String(full[full.utf8.index(after: $0)...]) } ?? full
    let above = end.map { $0 == full.startIndex ? "/" : String(full[..<$0]) } ?? "."
    guard !last.isEmpty, last != ".", last != ".." else { throw .EEXIST }
    let parent = try openToMake(in: above)
    return try last.withName { (name) throws(Errno) in try body(parent.fd, name) }
  }
}

/// What a path has led to.
struct FoundObject {
  let object: SharedFD
  /// Where it was when it was found; without links.
  let path: String
  let status: FileStatus

  var name: String { path.splitAtName.name }
}

extension String {
  /// The directory that an absolute path leads to, and the name in it.
  func splitAtFile() throws(CommandFailure) -> (parent: String, name: String) {
    let (above, name) = splitAtName
    guard !name.isEmpty, name != ".", name != ".." else {
      throw CommandFailure(
        .usage, "this path does not end in the name of a file or directory; give one that does")
    }
    return ("/" + above, name)
  }
}

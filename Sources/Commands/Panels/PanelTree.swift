// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Policy

/// The tree in which a person chooses a file for an app: what that person may see of it.
struct PanelTree {
  /// What was chosen, below the root of the tree.
  struct Choice: Equatable {
    let path: String
    let inode: UInt64
    /// Whether the file was made for that.
    var isNew = false
  }

  /// Why something can't be chosen, as a sentence; or that it is there already.
  enum Refusal: Error, Equatable {
    case sentence(String)
    case isThere(name: String)
  }

  /// Where it is mounted.
  let root: String
  /// The user's home, below that; nothing where they have none.
  let home: String

  /// The tree that is mounted at a path, for a user; nil if it can't be reached.
  init?(at mountPoint: String, for user: UInt32) {
    guard let directory = try? FD.cwd.openFollowing(mountPoint, pathOnly | O_DIRECTORY),
      let path = try? directory.fd.ownPath(), let root = String(validating: path, as: UTF8.self)
    else { return nil }
    self.root = root
    home = Self.home(of: user, in: root).map { "Users/\($0)" } ?? ""
  }

  private static func home(of user: UInt32, in root: String) -> String? {
    guard let users = try? FD.cwd.open(root + "/Users", O_RDONLY | O_DIRECTORY) else { return nil }
    return (try? MountedHome.name(of: user, in: users.fd)) ?? nil
  }

  /// Where something is that a person typed: from the home, from the tree's root, or from the machine's.
  func full(_ typed: String) -> String {
    if typed == "~" || typed.begins(with: "~/") { return "\(root)/\(home)\(typed.dropFirst())" }
    if typed == root || typed.begins(with: root + "/") { return typed }
    return typed.begins(with: "/") ? root + typed : "\(root)/\(home)/\(typed)"
  }

  // MARK: Choosing

  /// What a person means by a path, which must be what the app wants; `place` is where that is, if it is
  /// known.
  func choose(
    _ typed: String, at place: String? = nil, _ request: PanelRequest, replacing: Bool = false
  ) throws(Refusal) -> Choice {
    let full = place ?? full(typed)
    if request.kind == .save { return try chooseSave(full, typed, request, replacing: replacing) }
    let opened = try open(full, typed)
    let status = try status(opened.fd, typed)
    switch request.kind {
    case .folder where !status.isDirectory: throw refusal(typed, "is not a folder")
    case .file where status.isDirectory: throw refusal(typed, "is a folder; choose a file in it")
    case .file where !status.isRegular: throw refusal(typed, "is not a file")
    default: break
    }
    let path = try path(of: opened.fd, status, typed)
    try checkType(of: path.splitAtName.name, request)
    return Choice(path: path, inode: UInt64(status.st_ino))
  }

  /// The file is made where there is none: the app is granted what is there.
  private func chooseSave(
    _ full: String, _ typed: String, _ request: PanelRequest, replacing: Bool
  ) throws(Refusal) -> Choice {
    guard let slash = full.utf8.lastIndex(of: UInt8(ascii: "/")) else {
      throw refusal(typed, "is not in the tree")
    }
    let name = String(full[full.utf8.index(after: slash)...])
    guard !name.isEmpty, name != ".", name != ".." else { throw refusal(typed, "has no name for the file") }
    let parent = try open(String(full[..<slash]), typed)
    guard try status(parent.fd, typed).isDirectory else { throw refusal(typed, "is not in a folder") }
    try checkType(of: name, request)
    let file: OwnedFD
    var isNew = false
    do throws(Errno) {
      let flags = O_WRONLY | O_CREAT | O_EXCL | O_NONBLOCK
      do throws(Errno) {
        file = try parent.fd.open(name, flags, mode: 0o666)
        isNew = true
      } catch .EEXIST {
        file = try parent.fd.open(name, pathOnly)
      }
    } catch {
      throw refusal(typed, "can't be created: \(error.message)")
    }
    let status = try status(file.fd, typed)
    guard status.isRegular else { throw refusal(typed, "is there already, and not a file") }
    do throws(Refusal) {
      let path = try path(of: file.fd, status, typed)
      guard isNew || replacing else { throw .isThere(name: name) }
      return Choice(path: path, inode: UInt64(status.st_ino), isNew: isNew)
    } catch {
      if isNew { try? parent.fd.remove(name, directory: false) }
      throw error
    }
  }

  /// Takes away a file that was made to be chosen, unless something was done to it.
  func undo(_ choice: Choice) {
    guard choice.isNew else { return }
    let (above, name) = choice.path.splitAtName
    guard let parent = try? FD.cwd.openFollowing("\(root)/\(above)", O_RDONLY | O_DIRECTORY),
      let status = try? parent.fd.status(of: name), UInt64(status.st_ino) == choice.inode, status.st_size == 0
    else { return }
    try? parent.fd.remove(name, directory: false)
  }

  // MARK: Looking

  private func refusal(_ typed: String, _ why: String) -> Refusal {
    .sentence("'\(typed.sanitized)' \(why).")
  }

  private func open(_ full: String, _ typed: String) throws(Refusal) -> OwnedFD {
    guard !full.utf8.contains(0) else { throw refusal(typed, "is not a path") }
    do throws(Errno) {
      return try TrustedLinks.open(full, allInTree: true)
    } catch {
      if error == .ELOOP, let target = TrustedLinks.target(of: full) {
        throw refusal(typed, "is a link, or in one, and leads to '\(target.sanitized)'; choose that")
      }
      throw refusal(typed, "can't be used: \(error.message)")
    }
  }

  private func status(_ fd: FD, _ typed: String) throws(Refusal) -> FileStatus {
    do throws(Errno) { return try fd.status() } catch {
      throw refusal(typed, "can't be used: \(error.message)")
    }
  }

  /// Where an object is in the tree, links resolved; it must be found there again.
  private func path(of fd: FD, _ status: FileStatus, _ typed: String) throws(Refusal) -> String {
    guard let bytes = try? fd.ownPath(), let path = String(validating: bytes, as: UTF8.self) else {
      throw refusal(typed, "has a path that is too long, or not text")
    }
    guard path.begins(with: root + "/") else {
      throw refusal(
        typed, path == root ? "is the whole tree; choose something in it" : "is not in the tree at \(root)")
    }
    guard let again = try? FD.cwd.open(path, pathOnly), let found = try? again.fd.status(),
      found.isSameObject(as: status)
    else { throw refusal(typed, "was moved meanwhile") }
    return String(path.dropFirst(root.count + 1))
  }

  private func checkType(of name: String, _ request: PanelRequest) throws(Refusal) {
    guard request.kind != .folder, !FileType.matches(name, request.types) else { return }
    let wanted = FileType.extensions(of: request.types).map { ".\($0)" }.joined(separator: ", ")
    throw refusal(name, "is not of a type that the app wants; it must end in \(wanted)")
  }
}

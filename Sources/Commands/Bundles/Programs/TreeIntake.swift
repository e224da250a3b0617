// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Policy

/// Copies a directory that is to become a part of an app, and says what it leaves out.
///
/// - A link that leads out of the directory is left out: what it leads to may be anybody's secret. Only a
///   file of the system's that everybody can read is copied in its place, as the python of a virtual
///   environment is.
/// - Devices, fifos, sockets, what can't be read, and other filesystems are left out.
/// - Rights of owners and groups (setuid, setgid) are left out of files that come along.
/// - What is copied is not what is being made, should that be inside.
final class TreeIntake {
  private static let depthLimit = 90
  private static let entryLimit = 500_000

  /// What was left out, and why.
  private(set) var notes: [String] = []
  private let source: FD
  private let sourcePath: String
  private let target: FD
  /// What is being made.
  private let own: FileStatus
  private var device: dev_t = 0
  private var count = 0
  private var links: [String] = []

  private init(_ source: FD, _ path: String, to target: FD, own: FileStatus) {
    self.source = source
    sourcePath = path
    self.target = target
    self.own = own
  }

  /// Copies what is in a directory to an empty one; gives what there is to say of it.
  static func copy(
    _ source: FD, at path: String, to target: FD, besides own: FileStatus
  ) throws -> [String] {
    let intake = TreeIntake(source, path, to: target, own: own)
    do throws(Errno) { intake.device = try source.status().st_dev } catch {
      throw CommandFailure(error, "can't read \(path.sanitized): \(error.message)")
    }
    try intake.copy(source, to: target, prefix: "", depth: 0)
    intake.settleLinks()
    return intake.notes
  }

  private func note(_ path: String, _ why: String) { notes.append("left out \(sourcePath)/\(path): \(why)") }

  private func copy(_ from: FD, to: FD, prefix: String, depth: Int) throws {
    let entries: [(name: [UInt8], type: UInt8)]
    do throws(Errno) { entries = try from.entries(atMost: Self.entryLimit) } catch {
      throw CommandFailure(error, "can't list \(sourcePath)/\(prefix): \(error.message)".sanitized)
    }
    count += entries.count
    guard depth < Self.depthLimit, count <= Self.entryLimit else {
      throw CommandFailure(
        .failed,
        "\(sourcePath) is too much for an app: more than \(Self.depthLimit) directories deep, or ".sanitized
          + "more than \(Self.entryLimit) files")
    }
    for (bytes, _) in entries.inOrder(by: { $0.name.lexicographicallyPrecedes($1.name) }) {
      guard let name = String(validating: bytes, as: UTF8.self) else {
        note(prefix + String(decoding: bytes, as: UTF8.self), "its name is not UTF-8")
        continue
      }
      let path = prefix + name
      do {
        let status = try from.status(of: name)
        if status.isDirectory {
          let child = try from.openDirectoryToExamine(name)
          let found = try child.fd.status()
          guard !found.isSameObject(as: own) else { continue }
          guard found.st_dev == device else { throw Errno.EXDEV }
          try to.makeDirectory(name, mode: 0o755)
          let made = try to.openDirectory(name)
          try copy(child.fd, to: made.fd, prefix: path + "/", depth: depth + 1)
        } else if status.isSymlink {
          try to.makeSymlink(name, to: try from.linkTarget(of: name))
          links.append(path)
        } else if status.isRegular {
          let file = try from.openToExamine(name)
          try take(file.fd, to: to, name, path)
        } else {
          note(
            path, "it is a \(status.type == S_IFIFO ? "fifo" : status.type == S_IFSOCK ? "socket" : "device")"
          )
        }
      } catch let error as Errno {
        switch error {
        case .EACCES, .EPERM: note(path, "you can't read it")
        case .EXDEV: note(path, "another filesystem is mounted there")
        case .ENOENT, .ELOOP, .ENOTDIR: note(path, "it was changed meanwhile")
        default: throw CommandFailure(error, "can't copy \(sourcePath)/\(path): \(error.message)".sanitized)
        }
      }
    }
  }

  private func take(_ file: FD, to directory: FD, _ name: String, _ path: String) throws(Errno) {
    let status = try file.status()
    guard status.isRegular else { throw .ENOENT }
    if status.st_mode & 0o6000 != 0 { notes.append(ProgramSearch.withoutRights("\(sourcePath)/\(path)")) }
    try directory.makeFile(name, copying: file, mode: status.st_mode & 0o100 == 0 ? 0o644 : 0o755)
  }

  // MARK: Links

  /// Keeps the links that lead to something that has come along, and does away with the others.
  ///
  /// A link may lead through others. So those that lead out by themselves are dealt with first, and then, as
  /// often as there are links that have lost what they led to, all others.
  private func settleLinks() {
    var kept = links.filter { settle($0, if: { $0.first == UInt8(ascii: "/") }) }
    while true {
      let rest = kept.filter { path in
        if (try? target.openBeneath(path, pathOnly)) != nil { return true }
        return settle(path, if: { _ in true })
      }
      if rest.count == kept.count { return }
      kept = rest
    }
  }

  /// Replaces a link by what it leads to, or removes it, if its target is such a one; whether it still is
  /// there.
  private func settle(_ path: String, if isBad: ([UInt8]) -> Bool) -> Bool {
    let isThere: Bool? = try? target.withParent(of: path) { (parent, name) throws(Errno) in
      guard isBad(try parent.linkTarget(of: name)) else { return true }
      try parent.remove(name, directory: false)
      guard let real = realPath("\(sourcePath)/\(path)"), let file = Self.systemFile(real) else {
        note(path, "it is a link that leads out of the directory, or nowhere")
        return false
      }
      let mode: FileMode = try file.fd.status().st_mode & 0o100 == 0 ? 0o644 : 0o755
      try parent.makeFile(name, copying: file.fd, mode: mode)
      notes.append("\(sourcePath)/\(path) leads to \(real), which was copied")
      return false
    }
    return isThere ?? false
  }

  /// A file that every app sees anyway.
  private static func systemFile(_ path: String) -> OwnedFD? {
    guard Sandbox.shows(path),
      let file = try? FD.cwd.openFollowing(path, O_RDONLY | O_NONBLOCK | O_NOCTTY),
      let status = try? file.fd.status(), status.isRegular, status.st_mode & 0o004 != 0
    else { return nil }
    return file
  }
}

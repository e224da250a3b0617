// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

extension ConfigurationFile {
  /// What came of adding something.
  enum Addition {
    case added
    /// It says just that already.
    case isThere
    /// Why it is left as it is.
    case isOther(String)
  }

  /// Adds a section with some lines at the end; a file that has such a section is left as it is.
  func add(section: ConfigurationKey.Section, _ lines: [String]) throws(CommandFailure) -> Addition {
    let before = read()
    if let problem = before?.problems.first { return .isOther(problem.sentence(in: "it")) }
    let there =
      before?.entries.filter { $0.key.section == section }.map { "\($0.key.name) = \($0.value)" } ?? []
    if !there.isEmpty {
      return there == lines
        ? .isThere : .isOther("it has a section [\(section.rawValue)] that says something else")
    }
    let added = ["", "[\(section.rawValue)]"] + lines
    guard
      ConfigurationText(Array(added.joined(separator: "\n").utf8), isMachines: isMachines).problems.isEmpty
    else { return .isOther("one of the values can't be written there") }
    do throws(Errno) {
      let (parent, name) = path.splitAtName
      let directory = try Self.openMaking("/" + parent)
      var bytes: [UInt8] = []
      if before != nil {
        // Whoever has a link there keeps the file elsewhere.
        guard try directory.fd.status(of: name).isRegular else { return .isOther("it is a link") }
        bytes = try directory.fd.contents(of: name, limit: ConfigurationText.sizeLimit)
        if let last = bytes.last, last != 10 { bytes.append(10) }
      }
      bytes += Array((added.drop { $0.isEmpty && bytes.isEmpty }.joined(separator: "\n") + "\n").utf8)
      try directory.fd.replaceContents(of: name, with: bytes, mode: isMachines ? 0o644 : 0o600)
      return .added
    } catch {
      throw CommandFailure(error, "can't write \(path): \(error.message)")
    }
  }

  /// Opens the directory that the file is in; it, and the one above, are made if they are missing.
  private static func openMaking(_ path: String) throws(Errno) -> OwnedFD {
    do throws(Errno) {
      return try FD.cwd.openFollowing(path, O_RDONLY | O_DIRECTORY)
    } catch .ENOENT {
      let (above, name) = path.splitAtName
      guard !name.isEmpty else { throw .ENOENT }
      let parent = try openMaking("/" + above)
      return try parent.fd.openDirectory(name, makingWith: 0o755)
    }
  }
}

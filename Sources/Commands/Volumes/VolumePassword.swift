// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy

/// The password of an encrypted volume, on its way from a person or a file to gocryptfs.
///
/// It is never a word of a command line or a variable, which others can read, and is erased in the end.
final class VolumePassword {
  static let option = CommandDescription.Option(
    name: "password-file", value: "FILE", help: "a file whose first line is the password; '-' is input",
    kind: .file)

  /// As much as gocryptfs reads, and a pipe has room for.
  private static let limit = 2000
  private var bytes: [UInt8]

  /// From a file, from what is piped into the command, or from the terminal; where it is new, twice.
  init(_ file: String?, isNew: Bool, of volume: String, _ context: Context) throws {
    // No other process of the user's looks into this one, and none of its memory is dumped (PR_SET_DUMPABLE).
    _ = clx_prctl(4, 0)
    guard file != nil || isatty(STDIN_FILENO) == 0 else {
      bytes = try TypedPassword.ask(
        isNew: isNew, of: "the volume \(volume.sanitized)", instead: "'--password-file'", context)
      return
    }
    let path = file ?? "-"
    bytes = try context.contents(of: path, limit: 1 << 16)
    let end = bytes.firstIndex { $0 == 10 || $0 == 13 } ?? bytes.count
    if end == 0 {
      throw CommandFailure(
        .failed,
        path == "-"
          ? "no password: there is no terminal to ask for it, and nothing was piped into the command; give "
            + "'--password-file'" : "the first line of \(path.sanitized) is empty; write the password there")
    }
    erase(from: end)
    bytes.removeLast(bytes.count - end)
    guard bytes.count <= Self.limit else {
      throw CommandFailure(.failed, "the password is longer than \(Self.limit) bytes; choose a shorter one")
    }
    if path != "-" { Self.warn(about: path, context) }
  }

  deinit { erase(from: 0) }

  private func erase(from start: Int) {
    bytes.withUnsafeMutableBytes { bytes in
      if let first = bytes.baseAddress { explicit_bzero(first + start, bytes.count - start) }
    }
  }

  private static func warn(about path: String, _ context: Context) {
    let status = try? FD.cwd.openFollowing(context.reachable(path), pathOnly).fdStatus()
    guard let status, status.isRegular, status.st_mode & 0o077 != 0 else { return }
    context.console.note(
      "other users may read \(path.sanitized), and with it the volume; 'chmod 600' keeps them out")
  }

  /// A pipe from which it can be read once.
  func pipe() throws(Errno) -> SharedFD {
    let ends = try LinuxIO.pipe()
    // It fits into the pipe, so this does not wait.
    try ends.write.fd.writeAll(bytes)
    return SharedFD(ends.takeRead())
  }
}

extension OwnedFD {
  fileprivate func fdStatus() throws(Errno) -> FileStatus { try fd.status() }
}

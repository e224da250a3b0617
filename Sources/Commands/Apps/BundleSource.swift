// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Glibc
internal import LinuxIO
internal import Policy

// The bundle that is to be installed: a directory, or one in a file of `insula pack`.

extension Context {
  /// What the commands that take either say of it.
  static let bundleForms = """
    BUNDLE is a directory, or an archive made by 'insula pack' or tar, which is unpacked in $TMPDIR
    (otherwise /var/tmp) while it is read. An archive with anything in it that no bundle can have is
    refused, and nothing of it is left.
    """

  /// Lends a bundle's directory and its name to `body`, and unpacks it before if it is in a file.
  ///
  /// The file is read, and what is in it is made, by this process with the rights of whoever runs it: a
  /// daemon gets to see the directory only, and reads that as the same user.
  func withBundle<Result>(_ path: String, _ body: (FD, String) throws -> Result) throws -> Result {
    let source = try openToRead(path)
    let status = try source.fd.status()
    if status.isDirectory { return try body(source.fd, name(of: path)) }
    // A pipe is one of a shell's `<(...)`.
    guard status.isRegular || status.type == S_IFIFO else {
      throw CommandFailure(.failed, "\(path.sanitized) is neither a bundle nor an archive of one")
    }
    let place = try UnpackingPlace(self)
    return try place.use {
      let name = try unpack(source.fd, path, in: place)
      let bundle = try place.directory.openDirectory(at: name)
      return try body(bundle.fd, name)
    }
  }

  private func openToRead(_ path: String) throws(CommandFailure) -> OwnedFD {
    do throws(Errno) { return try FD.cwd.openFollowing(reachable(path), O_RDONLY) } catch {
      throw CommandFailure(error, "can't open \(path.sanitized): \(error.message)")
    }
  }

  /// Gives the bundle's name.
  private func unpack(_ archive: FD, _ path: String, in place: UnpackingPlace) throws -> String {
    try ProgressLine.show(
      console, { (size: UnpackedSize?) in "unpacking \(path.sanitized): \(size?.words ?? "")" },
      while: { note in
        do throws(ArchiveFailure) {
          return try ArchiveUnpacker.unpack(
            archive, into: place.directory, progress: { note(UnpackedSize(entries: $0, bytes: $1)) },
            step: { (change) throws(ArchiveFailure) in try place.change(change) })
        } catch {
          throw CommandFailure(
            .failed, "can't unpack \(path): \(error)".sanitized, lines: place.advice(on: error))
        }
      })
  }
}

/// How far unpacking is.
private struct UnpackedSize: Sendable {
  let entries: Int
  let bytes: Int64

  var words: String { "\(entries) files, \(Int(bytes).asSize)" }
}

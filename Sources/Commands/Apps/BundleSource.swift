// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Synchronization

/// The bundle that is to be installed: a directory, or one in a file of `insula pack`.
struct BundleSource: ~Copyable {
  let path: String
  let file: OwnedFD
  let isDirectory: Bool
}

extension Context {
  /// What the commands that take either say of it.
  static let bundleForms = """
    BUNDLE is a directory, or an archive made by 'insula pack' or tar, which is unpacked in $TMPDIR
    (otherwise /var/tmp) while it is read. An archive with anything in it that no bundle can have is
    refused, and nothing of it is left.
    """

  /// Opens a bundle's directory, or a file with one in it.
  func openBundleSource(_ path: String) throws(CommandFailure) -> BundleSource {
    let file = try openToRead(path)
    do throws(Errno) {
      let status = try file.fd.status()
      // A pipe is one of a shell's `<(...)`.
      if status.isDirectory || status.isRegular || status.type == S_IFIFO {
        return BundleSource(path: path, file: file, isDirectory: status.isDirectory)
      }
    } catch {
      throw CommandFailure(error, "can't open \(path.sanitized): \(error.messageAboutPath)")
    }
    throw CommandFailure(.failed, "\(path.sanitized) is neither a bundle nor an archive of one")
  }

  /// Lends a bundle's directory and its name to `body`, and unpacks it before if it is in a file.
  ///
  /// The file is read, and what is in it is made, by this process with the rights of whoever runs it: a
  /// daemon gets to see the directory only, and reads that as the same user.
  func withBundle<Result>(
    _ source: borrowing BundleSource, _ body: (FD, String) throws -> Result
  ) throws -> Result {
    let path = source.path
    if source.isDirectory { return try body(source.file.fd, name(of: path)) }
    let archive = source.file.fd
    let place = try UnpackingPlace(self)
    return try place.use {
      let name = try unpack(archive, path, in: place)
      let bundle = try place.directory.openDirectory(at: name)
      return try body(bundle.fd, name)
    }
  }

  /// Lends a copy of a directory to `body`, made with the rights of whoever runs this.
  ///
  /// `path` is for messages.
  func withCopy<Result>(
    of directory: FD, at path: String = "the bundle", mostBytes: Int64 = .max, _ body: (FD) throws -> Result
  ) throws -> Result {
    let place = try UnpackingPlace(self)
    return try place.use {
      let copied = Atomic<Int64>(0)
      let copy = TreeCopy(
        uid: ProcessID.user, gid: ProcessID.group, progress: { copied.store($0.bytes, ordering: .relaxed) },
        isCancelled: { copied.load(ordering: .relaxed) > mostBytes })
      let name = "copy"
      do {
        _ = try copy.copy(directory, named: name, in: place.directory)
      } catch {
        throw CommandFailure(.failed, "\(path) can't be copied: \(error)".sanitized)
      }
      let made = try place.directory.openDirectory(name)
      return try body(made.fd)
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

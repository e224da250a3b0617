// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy

/// A user's photo library, as Photos has it: files in `originals`, in a directory for the first digit of each
/// name.
struct PhotoLibrary: ~Copyable {
  static let usual = "Photos Library.photoslibrary"

  private let originals: OwnedFD

  /// The usual one, or the first of those that there are; the usual one is made if there is none.
  ///
  /// The home is open for reading. No link is followed.
  init(in home: FD) throws(Errno) {
    let pictures = try home.directoryToFill(PrivacyService.photosAdd.folder, mode: 0o700)
    let library: OwnedFD
    do throws(Errno) {
      library = try pictures.fd.openDirectoryToExamine(Self.usual)
    } catch .ENOENT {
      // Only then what else is there is looked at, which takes a time that says how much there is.
      library = try pictures.fd.directoryToFill(try Self.other(in: pictures.fd) ?? Array(Self.usual.utf8))
    }
    originals = try library.fd.directoryToFill("originals")
  }

  private static func other(in pictures: FD) throws(Errno) -> [UInt8]? {
    let names = try pictures.entries(atMost: 1000) { name, type in
      type == UInt8(DT_DIR) && PrivacyService.photos.gives(name.buffer)
    }
    return names.map(\.name).min { $0.lexicographicallyPrecedes($1) }
  }

  /// Adds a copy of a file, whole or not at all; nothing if it has been added under that name.
  func add(_ photo: FD, named name: String) throws(Errno) {
    let directory = try originals.fd.directoryToFill(String(name.prefix(1)))
    do throws(Errno) {
      do throws(Errno) {
        try Self.addUnnamed(photo, as: name, in: directory.fd)
      } catch .ENOENT, .EOPNOTSUPP, .EISDIR {
        // Linux before 6.10, and before 6.1.
        try Self.addBeside(photo, as: name, in: directory.fd)
      }
    } catch .EEXIST {}
  }

  /// Until it is whole it has no name, so nothing is left of it if this process is ended.
  private static func addUnnamed(_ photo: FD, as name: String, in directory: FD) throws(Errno) {
    let file = try directory.open(Name.here, O_WRONLY | CLX_O_TMPFILE, mode: 0o644)
    try fill(file.fd, from: photo)
    try name.withName { (name) throws(Errno) in try file.fd.linkUnnamed(into: directory, as: name) }
  }

  /// What is left of it if this process is ended goes when the same call is made again.
  static func addBeside(_ photo: FD, as name: String, in directory: FD) throws(Errno) {
    try ".\(name)".withName { (beside) throws(Errno) in
      do throws(Errno) { try directory.remove(beside, directory: false) } catch .ENOENT {}
      let file = try directory.open(beside, O_WRONLY | O_CREAT | O_EXCL, mode: 0o644)
      do throws(Errno) {
        try fill(file.fd, from: photo)
        try name.withName { (name) throws(Errno) in
          try directory.rename(beside, to: directory, name, flags: UInt32(CLX_RENAME_NOREPLACE))
        }
      } catch {
        try? directory.remove(beside, directory: false)
        throw error
      }
    }
  }

  private static func fill(_ file: FD, from photo: FD) throws(Errno) {
    let status = try photo.status()
    try ContentsCopy().copy(from: photo, status, to: file)
    // Programs sort by it.
    try file.changeTimes(access: .set(status.st_mtim), modification: .set(status.st_mtim))
    try file.synchronize(dataOnly: false)
  }
}

extension FD {
  /// Opens a directory for reading that is made if there is none.
  fileprivate func directoryToFill(_ name: some NameText, mode: FileMode = 0o755) throws(Errno) -> OwnedFD {
    do throws(Errno) { try makeDirectory(name, mode: mode) } catch .EEXIST {}
    return try openDirectoryToExamine(name)
  }
}

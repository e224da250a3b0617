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
    var first: [UInt8]?
    _ = try pictures.entries { name, type in
      if type == UInt8(DT_DIR), PrivacyService.photos.gives(name.buffer) {
        let name = Array(name.buffer)
        if first.map({ name.lexicographicallyPrecedes($0) }) ?? true { first = name }
      }
      return false
    }
    return first
  }

  /// Looks at a copy that nobody else changes, and says which extension its name is to have.
  typealias Check = (_ copy: FD) throws(Errno) -> String

  /// Adds a copy of a file that was so long when `status` was taken, whole or not at all; nothing if it has
  /// been added under that name, which gets an extension.
  func add(
    _ photo: FD, _ status: FileStatus, named name: String, _ check: Check
  ) throws(Errno) {
    let directory = try self.directory(String(name.prefix(1)))
    do throws(Errno) {
      guard try !Self.addUnnamed(photo, status, named: name, in: directory.fd, check) else { return }
      try Self.addBeside(photo, status, named: name, in: directory.fd, check)
    } catch .EEXIST {}
  }

  /// The directory for a first digit; where it is missing, all are made, so that room on the disk does not
  /// tell how many there were.
  private func directory(_ digit: String) throws(Errno) -> OwnedFD {
    do throws(Errno) {
      return try originals.fd.openDirectoryToExamine(digit)
    } catch .ENOENT {
      for other in "0123456789ABCDEF" { _ = try? originals.fd.directoryToFill(String(other)) }
      return try originals.fd.directoryToFill(digit)
    }
  }

  /// Until it is whole it has no name, so nothing is left of it if this process is ended; false where that
  /// can't be done.
  private static func addUnnamed(
    _ photo: FD, _ status: FileStatus, named name: String, in directory: FD, _ check: Check
  ) throws(Errno) -> Bool {
    guard let file = try unnamedFile(in: directory) else { return false }
    try fill(file.fd, from: photo, status)
    let name = "\(name).\(try check(file.fd))"
    do throws(Errno) {
      try name.withName { (name) throws(Errno) in try file.fd.linkUnnamed(into: directory, as: name) }
    } catch .ENOENT {
      // Linux before 6.10.
      return false
    }
    return true
  }

  private static func unnamedFile(in directory: FD) throws(Errno) -> OwnedFD? {
    do throws(Errno) {
      return try directory.open(Name.here, O_RDWR | CLX_O_TMPFILE, mode: 0o644)
    } catch .ENOENT, .EOPNOTSUPP, .EISDIR {
      // Linux before 6.1.
      return nil
    }
  }

  /// What is left of it if this process is ended goes when the same call is made again.
  static func addBeside(
    _ photo: FD, _ status: FileStatus, named name: String, in directory: FD, _ check: Check
  ) throws(Errno) {
    try ".\(name)".withName { (beside) throws(Errno) in
      do throws(Errno) { try directory.remove(beside, directory: false) } catch .ENOENT {}
      let file = try directory.open(beside, O_RDWR | O_CREAT | O_EXCL, mode: 0o644)
      do throws(Errno) {
        try fill(file.fd, from: photo, status)
        try "\(name).\(try check(file.fd))".withName { (name) throws(Errno) in
          try directory.rename(beside, to: directory, name, flags: UInt32(CLX_RENAME_NOREPLACE))
        }
      } catch {
        try? directory.remove(beside, directory: false)
        throw error
      }
    }
  }

  private static func fill(_ file: FD, from photo: FD, _ status: FileStatus) throws(Errno) {
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

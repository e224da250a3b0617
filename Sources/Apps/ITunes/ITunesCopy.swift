// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
package import Policy
internal import PropertyLists
internal import Store

/// Makes an app's or a group's data of a backup in iTunes' form, in a new directory that nobody else sees.
///
/// Every name is made and never opened as something that was there; no link is followed, on either side.
/// Set-id bits are dropped, and whose the files were makes no difference.
final class ITunesCopy {
  private let backup: ITunesBackup
  private let access: SecurityAccess
  private let owner: (uid: UInt32, gid: UInt32)
  private let progress: (TreeCopy.Count) -> Void
  private let contents = ContentsCopy()
  private(set) var count = TreeCopy.Count()
  private(set) var omissions: [DataCopy.Omission] = []

  init(
    _ backup: ITunesBackup, access: SecurityAccess, owner: (uid: UInt32, gid: UInt32),
    progress: @escaping (TreeCopy.Count) -> Void
  ) {
    self.backup = backup
    self.access = access
    self.owner = owner
    self.progress = progress
  }

  func make(_ domain: BackupDomain, in data: FD) throws(DataFailure) {
    let files = try backup.files(of: domain) { name in
      omissions.append(.init(path: name, reason: "a container has no such name; it was left out"))
    }
    try make(files[...], from: 0, in: data)
  }

  /// Makes files that are in one directory, whose path is `start` bytes long with the slash.
  private func make(_ files: ArraySlice<ITunesFile>, from start: Int, in directory: FD) throws(DataFailure) {
    var rest = files
    while let first = rest.first {
      let name = first.name(from: start)
      let group = rest.prefix { $0.name(from: start) == name }
      rest = rest.dropFirst(group.count)
      let end = start + name.count
      guard first.path.count == end else {
        // The directory has no row of its own.
        try makeDirectory(Array(name), nil, group, end, in: directory)
        continue
      }
      let below = group.dropFirst()
      if let next = below.first {
        guard next.path.count > end else { throw flaw(first, "the backup lists it twice") }
        guard first.file.flags == 2 else { throw flaw(next, "it is in something that is no directory") }
      }
      switch first.file.flags {
      case 2: try makeDirectory(Array(name), first, below, end, in: directory)
      case 4: try makeLink(Array(name), first, in: directory)
      default: try makeFile(Array(name), first, in: directory)
      }
    }
  }

  private func makeDirectory(
    _ name: [UInt8], _ file: ITunesFile?, _ below: ArraySlice<ITunesFile>, _ end: Int, in directory: FD
  ) throws(DataFailure) {
    let place = String(decoding: (file ?? below.first)?.path.prefix(end) ?? [], as: UTF8.self)
    let made = try explaining("make", place) { () throws(Errno) in
      try name.withName { (name) throws(Errno) in try directory.makeAndOpenDirectory(name) }
    }
    count.directories += 1
    try make(below, from: end + 1, in: made.fd)
    try finish(made.fd, file, place)
  }

  private func makeLink(_ name: [UInt8], _ file: ITunesFile, in directory: FD) throws(DataFailure) {
    try explaining("make the link", file.place) { () throws(Errno) in
      try directory.makeSymlink(name, to: file.file.target ?? "")
      let link = try directory.child(name)
      try give(link.fd)
      try setTimes(of: link.fd, file)
    }
    count.links += 1
  }

  private func makeFile(_ name: [UInt8], _ file: ITunesFile, in directory: FD) throws(DataFailure) {
    let copy = try explaining("make", file.place) { () throws(Errno) in
      try directory.open(name, O_RDWR | O_CREAT | O_EXCL, mode: 0o600)
    }
    try copyData(of: file, to: copy.fd)
    try finish(copy.fd, file, file.place)
    count.files += 1
    count.bytes = count.bytes.adding(clamped: file.file.size)
    progress(count)
  }

  /// What has its data must be a file of the length that was told, at the place that follows from the path.
  private func copyData(of file: ITunesFile, to copy: FD) throws(DataFailure) {
    let folder = BackupDomain.folder(of: file.id)
    do throws(Errno) {
      let folder = try backup.directory.fd.openDirectoryToExamine(folder)
      // Before it is opened: to open a device may do something.
      guard try folder.fd.status(of: file.id).isRegular else { throw .EINVAL }
      let data = try folder.fd.openToExamine(file.id)
      let status = try data.fd.status()
      guard status.isRegular else { throw .EINVAL }
      guard Int64(status.st_size) == file.file.size else { throw .EFBIG }
      let before = count
      let outcome = try contents.copy(from: data.fd, status, to: copy) { copied in
        var now = before
        now.bytes = now.bytes.adding(clamped: copied)
        progress(now)
        return true
      }
      guard outcome == .whole, Int64(try copy.status().st_size) == file.file.size else { throw .EFBIG }
    } catch .ENOENT {
      // Of an empty file there may be none.
      if file.file.size > 0 { throw flaw(file, "its data are not in the backup") }
    } catch .EINVAL, .ENOTDIR, .ELOOP, .EXDEV {
      throw flaw(file, "its data are not in a file of the backup")
    } catch .EFBIG {
      throw flaw(file, "its data are not as long as the backup says")
    } catch {
      throw .failed(doing: "copy", path: "\(backup.path)/\(folder)/\(file.id)", errno: error)
    }
  }

  // MARK: What is beside the contents

  /// All that belongs to something that was made, in the order in which nothing stands against the rest;
  /// what the backup says nothing about is its owner's alone.
  private func finish(_ made: FD, _ file: ITunesFile?, _ place: String) throws(DataFailure) {
    var acl: AccessControlList?
    var flags: FileFlags = []
    var kept: [(name: String, value: [UInt8])] = []
    for (name, value) in file?.file.attributes.entries ?? [] {
      let value = value.data ?? []
      if name == BackedUpFile.aclName {
        guard let known = Self.acl(value) else { throw bad(place, "its ACL can't be read") }
        acl = known
      } else if name == BackedUpFile.flagsName {
        guard let known = FileFlags(words: String(decoding: value, as: UTF8.self)) else {
          throw bad(place, "its flags can't be read")
        }
        flags = known
      } else if !name.isEmpty, !name.utf8.contains(0), KeptAttributes.contains(Array("user.\(name)".utf8)) {
        kept.append(("user.\(name)", value))
      }
    }
    if ProcessID.user != 0, !flags.isDisjoint(with: .rootSettable) {
      let left = flags.intersection(.rootSettable).words
      omissions.append(.init(path: place, reason: "it was copied, but only root can set its flags \(left)"))
      flags.subtract(.rootSettable)
    }
    try explaining("finish", place) { () throws(Errno) in
      for (name, value) in kept { try AttributesCopy.set(name, to: value, on: made) }
      try give(made)
      if let file {
        try made.changeMode(file.file.mode & 0o1777)
        try setTimes(of: made, file)
      }
      if let acl { try access.setACL(acl, on: made) }
      if !flags.isEmpty { try access.setFlags(flags, on: made) }
    }
  }

  private static func acl(_ bytes: [UInt8]) -> AccessControlList? {
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 8)
    defer { room.deallocate() }
    room.copyBytes(from: bytes)
    return try? AccessControlList(filesec: UnsafeRawBufferPointer(room))
  }

  private func give(_ made: FD) throws(Errno) {
    let status = try made.status()
    guard status.st_uid != owner.uid || status.st_gid != owner.gid else { return }
    try made.changeOwner(uid: owner.uid, gid: owner.gid)
  }

  private func setTimes(of made: FD, _ file: ITunesFile) throws(Errno) {
    let time = FileTime(tv_sec: Int(file.file.modified), tv_nsec: 0)
    try made.changeTimes(access: .set(time), modification: .set(time))
  }

  // MARK: What is wrong

  private func flaw(_ file: ITunesFile, _ what: String) -> DataFailure { bad(file.place, what) }

  private func bad(_ place: String, _ what: String) -> DataFailure {
    .badBackup(path: backup.path, reason: "the file '\(place)': \(what)")
  }
}

extension ITunesFile {
  fileprivate var place: String { String(decoding: path, as: UTF8.self) }

  /// The name that begins there.
  fileprivate func name(from start: Int) -> ArraySlice<UInt8> {
    path[start...].prefix { $0 != UInt8(ascii: "/") }
  }
}

extension AppContainer {
  /// Replaces the data by those that a backup has under an identifier, which may be spelled otherwise there;
  /// as an import of a package does.
  package func importData(
    from backup: ITunesBackup, of identifier: AppIdentifier, replacing: Bool,
    progress: @escaping (TreeCopy.Count) -> Void = { _ in }, exchange: (NewData) throws -> Void
  ) throws -> DataReport {
    let copy = ITunesCopy(backup, access: access, owner: owner, progress: progress)
    try replaceData(replacing: replacing, exchange: exchange) { (data) throws(DataFailure) in
      try copy.make(kind == .data ? .app(identifier) : .group(identifier), in: data)
    }
    return DataReport(count: copy.count, omissions: copy.omissions)
  }
}

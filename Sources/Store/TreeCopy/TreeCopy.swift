// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO

/// Copies a tree as a bundle is to be installed.
///
/// - Both sides are reached by descriptors and single names; no link is followed, no other filesystem entered.
/// - Contents come over as they are: by sharing blocks where the filesystem can, holes as holes. So do symbolic links, times, and
///   attributes of users.
/// - What is not sealed is made uniform: directories have mode 0755, files 0644 or, if their owner could run them, 0755; all of it
///   belongs to one owner. Files that had several names are files of their own.
/// - Anything else (devices, fifos, sockets) ends it, and so does a failure; the caller removes what there is by then.
///
/// What the source contains may change while it is read. So what is to be relied on is checked in the copy, not in the source.
package struct TreeCopy {
  /// How much there is of it.
  package struct Count: Equatable, Sendable {
    package var directories = 0
    package var files = 0
    package var links = 0
    package var bytes: Int64 = 0
  }

  /// What bounds it: more is no bundle.
  package struct Limits: Sendable {
    package var depth = 100
    package var entries = 1_000_000
    package init() {}
  }

  private let owner: (uid: UInt32, gid: UInt32)
  private let limits: Limits
  private let progress: (Count) -> Void

  /// `progress` is called after each file, and now and then during a large one.
  package init(
    uid: UInt32, gid: UInt32, limits: Limits = Limits(), progress: @escaping (Count) -> Void = { _ in }
  ) {
    owner = (uid, gid)
    self.limits = limits
    self.progress = progress
  }

  /// Copies `source`, a directory that is open for reading, to the new directory `name`, and forces all of it to disk.
  package func copy(_ source: FD, to name: Name, in parent: FD) throws(TreeCopyFailure) -> Count {
    let run = TreeCopyRun(uid: owner.uid, gid: owner.gid, limits, progress)
    do throws(Errno) {
      try run.copyTop(source, to: name, in: parent)
      return run.count
    } catch {
      throw run.failure ?? TreeCopyFailure(path: "", reason: .failed(doing: "copy", error))
    }
  }
}

/// One run of it: what it has come to.
final class TreeCopyRun {
  private(set) var count = TreeCopy.Count()
  /// Why it has ended; the error that is thrown only carries it up.
  private(set) var failure: TreeCopyFailure?

  private let uid: UInt32
  private let gid: UInt32
  private let limits: TreeCopy.Limits
  private let progress: (TreeCopy.Count) -> Void
  private let contents = ContentsCopy()
  private let attributes = AttributesCopy()
  private var device: UInt64 = 0
  private var path: [[UInt8]] = []

  init(
    uid: UInt32, gid: UInt32, _ limits: TreeCopy.Limits, _ progress: @escaping (TreeCopy.Count) -> Void
  ) {
    self.uid = uid
    self.gid = gid
    self.limits = limits
    self.progress = progress
  }

  func copyTop(_ source: FD, to name: Name, in parent: FD) throws(Errno) {
    let status = try doing("look at") { () throws(Errno) in try source.status() }
    guard status.isDirectory else { throw fail(.failed(doing: "copy", .ENOTDIR)) }
    device = UInt64(status.st_dev)
    let listing = try doing("open") { () throws(Errno) in try source.reopened(O_RDONLY | O_DIRECTORY) }
    try copyDirectory(listing.fd, status, to: name, in: parent)
    // Once for all: a file at a time would wait for the disk as often as there are files.
    try doing("write to disk what was copied of") { () throws(Errno) in try parent.synchronizeFilesystem() }
  }

  // MARK: Directories

  private func copyDirectory(
    _ source: FD, _ status: FileStatus, to name: Name, in parent: FD
  ) throws(Errno) {
    guard path.count <= limits.depth else { throw fail(.tooDeep(limits.depth)) }
    let entries = try doing("list") { () throws(Errno) in try source.entries() }
    let target = try doing("make a copy of") { () throws(Errno) in
      try parent.makeDirectory(name, mode: 0o700)
      return try parent.open(name, O_RDONLY | O_DIRECTORY)
    }
    count.directories += 1
    for entry in entries {
      path.append(entry.name)
      try copy(entry, from: source, to: target.fd)
      path.removeLast()
    }
    try doing("finish the copy of") { () throws(Errno) in
      try attributes.copy(from: source, to: target.fd)
      try finish(target.fd, status, mode: 0o755)
    }
  }

  private func copy(
    _ entry: (name: [UInt8], type: UInt8), from source: FD, to target: FD
  ) throws(Errno) {
    guard count.files + count.links + count.directories < limits.entries else {
      throw fail(.tooMany(limits.entries))
    }
    guard entry.name.count <= 255, !entry.name.contains(0) else {
      throw fail(.badName("it is longer than 255 bytes, or holds a zero"))
    }
    try entry.name.withName { (name) throws(Errno) in
      guard name.isComponent else { throw fail(.badName("it means something in a path")) }
      switch Int32(entry.type) {
      case Int32(DT_REG): try copyFile(name, from: source, to: target)
      case Int32(DT_DIR): try openDirectoryAndCopy(name, from: source, to: target)
      case Int32(DT_LNK): try copyLink(name, from: source, to: target)
      default:
        // Some filesystems don't say in a listing what an entry is.
        let status = try doing("look at") { () throws(Errno) in try source.status(of: name) }
        if status.isRegular {
          try copyFile(name, from: source, to: target)
        } else if status.isDirectory {
          try openDirectoryAndCopy(name, from: source, to: target)
        } else if status.isSymlink {
          try copyLink(name, from: source, to: target)
        } else {
          throw fail(.specialFile(Self.kind(of: status)))
        }
      }
    }
  }

  private func openDirectoryAndCopy(_ name: Name, from source: FD, to target: FD) throws(Errno) {
    let directory = try doing("open") { () throws(Errno) in try source.open(name, O_RDONLY | O_DIRECTORY) }
    let status = try doing("look at") { () throws(Errno) in try directory.fd.status() }
    guard UInt64(status.st_dev) == device else { throw fail(.otherFilesystem) }
    try copyDirectory(directory.fd, status, to: name, in: target)
  }

  // MARK: Files and links

  private func copyFile(_ name: Name, from source: FD, to target: FD) throws(Errno) {
    // O_NONBLOCK: what was put in its place meanwhile must not stop us.
    let file = try doing("open") { () throws(Errno) in try source.open(name, O_RDONLY | O_NONBLOCK) }
    let status = try doing("look at") { () throws(Errno) in try file.fd.status() }
    guard status.isRegular else { throw fail(.changed) }
    guard UInt64(status.st_dev) == device else { throw fail(.otherFilesystem) }
    let mode: FileMode = status.permissions & 0o100 == 0 ? 0o644 : 0o755
    let copy = try doing("make a copy of") { () throws(Errno) in
      try target.open(name, O_WRONLY | O_CREAT | O_EXCL, mode: mode)
    }
    let before = count.bytes
    let isWhole = try doing("copy") { () throws(Errno) in
      try contents.copy(from: file.fd, status, to: copy.fd) { copied in
        count.bytes = before + copied
        progress(count)
      }
    }
    guard isWhole else { throw fail(.changed) }
    count.bytes = before + Int64(status.st_size)
    try doing("finish the copy of") { () throws(Errno) in
      try attributes.copy(from: file.fd, to: copy.fd)
      try finish(copy.fd, status, mode: mode)
    }
    count.files += 1
    progress(count)
  }

  private func copyLink(_ name: Name, from source: FD, to target: FD) throws(Errno) {
    try doing("copy the link") { () throws(Errno) in
      let link = try source.child(name)
      let status = try link.fd.status()
      let room = UnsafeMutableRawBufferPointer.allocate(byteCount: Int(PATH_MAX) + 1, alignment: 1)
      defer { room.deallocate() }
      let length = try link.fd.readLink(into: UnsafeMutableRawBufferPointer(rebasing: room.dropLast()))
      room[length] = 0
      guard let text = room.baseAddress else { throw .ENOMEM }
      try target.makeSymlink(name, to: text.assumingMemoryBound(to: CChar.self))
      let copy = try target.child(name)
      try copy.fd.changeOwner(uid: uid, gid: gid)
      try copy.fd.changeTimes(access: .set(status.st_atim), modification: .set(status.st_mtim))
    }
    count.links += 1
    progress(count)
  }

  private func finish(_ copy: FD, _ status: FileStatus, mode: FileMode) throws(Errno) {
    // Each change is one of the filesystem's journal; most files are made as they are to be.
    let made = try copy.status()
    // The owner first: a change of owner takes bits of the mode away.
    if made.st_uid != uid || made.st_gid != gid { try copy.changeOwner(uid: uid, gid: gid) }
    if made.permissions != mode { try copy.changeMode(mode) }
    try copy.changeTimes(access: .set(status.st_atim), modification: .set(status.st_mtim))
  }

  // MARK: Failures

  private func doing<Result: ~Copyable>(
    _ words: String, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    do throws(Errno) { return try body() } catch { throw fail(.failed(doing: words, error)) }
  }

  /// Notes why it ends, if that is not known already; what is thrown is of no more use.
  private func fail(_ reason: TreeCopyFailure.Reason) -> Errno {
    if failure == nil {
      let names = path.map { String(decoding: $0, as: UTF8.self) }
      failure = TreeCopyFailure(path: names.joined(separator: "/"), reason: reason)
    }
    return .EIO
  }

  private static func kind(of status: FileStatus) -> String {
    switch status.type {
    case S_IFIFO: "fifo"
    case S_IFSOCK: "socket"
    default: "device"
    }
  }
}

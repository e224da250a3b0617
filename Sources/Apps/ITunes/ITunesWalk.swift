// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy
internal import PropertyLists
internal import Store

/// Goes through containers and writes what of them is backed up into a new backup in iTunes' form.
///
/// Everything is reached by descriptors and single names; no link is followed, no other filesystem entered.
final class ITunesWalk {
  private(set) var parts: [ITunesExport.Part] = []
  /// What did not come over, and why.
  private(set) var omissions: [DataCopy.Omission] = []

  private let tree: FD
  private let access: SecurityAccess
  private let backup: FD
  private let own: FileStatus
  private let path: String
  private let manifest: ManifestDatabase
  private let progress: (TreeCopy.Count) -> Void
  private let reader = AttributesCopy()
  private let contents = ContentsCopy()
  private var count = TreeCopy.Count()

  /// Whose files they are, and where it is now, below the root of the tree.
  private var domain: BackupDomain?
  private var names: [[UInt8]] = []
  /// How many of the names lead to the top of the domain.
  private var above = 0

  private static let deepest = 250
  private static let longestArchive = 1_000_000

  init(
    tree: FD, access: SecurityAccess, backup: FD, path: String, progress: @escaping (TreeCopy.Count) -> Void
  ) throws(DataFailure) {
    (self.tree, self.access, self.backup, self.path) = (tree, access, backup, path)
    self.progress = progress
    own = try explaining("examine", path) { () throws(Errno) in try backup.status() }
    manifest = try Self.writing(path) { () throws(StoreError) in
      try ManifestDatabase(creatingIn: backup, path: "\(path)/\(ManifestDatabase.name)")
    }
  }

  func finish() throws(DataFailure) {
    try Self.writing(path) { () throws(StoreError) in try manifest.finish() }
  }

  private static func writing<Result: ~Copyable>(
    _ path: String, _ body: () throws(StoreError) -> Result
  ) throws(DataFailure) -> Result {
    do throws(StoreError) { return try body() } catch {
      let errno: Errno =
        switch error {
        case .noSpace: .ENOSPC
        case .failed(_, _, let errno): errno
        default: .EIO
        }
      throw .failed(doing: "write the list of files in", path: path, errno: errno)
    }
  }

  /// Copies what is in a directory, which is at a path below the root of the tree, unless that was done.
  func copy(_ domain: BackupDomain, _ place: String) throws(DataFailure) {
    guard !parts.contains(where: { $0.domain == domain.text }) else { return }
    var part = ITunesExport.Part(domain: domain.text)
    let before = count
    names = place.utf8.split(separator: UInt8(ascii: "/")).map { Array($0) }
    (self.domain, above) = (domain, names.count)
    if let top = try openTop(place) {
      try copyContents(of: top.fd)
      part.files = count.files - before.files
      part.directories = count.directories - before.directories
      part.links = count.links - before.links
      part.bytes = count.bytes - before.bytes
    } else {
      part.isLeftOut = true
    }
    parts.append(part)
  }

  /// Nil if it is not backed up, for its own sake or that of a directory above.
  private func openTop(_ place: String) throws(DataFailure) -> OwnedFD? {
    if BackupSet.reason(at: names) != nil { return nil }
    return try explaining("open", place) { () throws(Errno) -> OwnedFD? in
      var directory = try tree.duplicated()
      for name in names {
        directory = try directory.fd.child(name)
        if try attributes(of: directory.fd).isMarked { return nil }
      }
      return try directory.fd.reopened(O_RDONLY | O_DIRECTORY)
    }
  }

  // MARK: One thing

  /// Notes a directory and copies what is in it.
  private func copyContents(of directory: FD) throws(DataFailure) {
    guard names.count - above <= Self.deepest else {
      throw .notCopied(from: place, TreeCopyFailure(path: "", reason: .tooDeep(Self.deepest)))
    }
    let (status, found, entries) = try doing("list") { () throws(Errno) in
      (try directory.status(), try attributes(of: directory), try directory.entries())
    }
    // A backup of the directory that the backup is in would contain itself.
    if found.isMarked || status.isSameObject(as: own) { return }
    if names.count > above { count.directories += 1 }
    var file = BackedUpFile(status)
    file.attributes = found.all
    try note(file)
    for entry in entries.inOrder(by: { $0.name.lexicographicallyPrecedes($1.name) }) {
      names.append(entry.name)
      if isWanted(entry.name), BackupSet.reason(at: names) == nil { try copyEntry(entry.name, in: directory) }
      names.removeLast()
    }
  }

  /// At the top of a container are things that are not data.
  private func isWanted(_ name: [UInt8]) -> Bool { names.count > above + 1 || domain?.has(name) ?? false }

  private func copyEntry(_ name: [UInt8], in directory: FD) throws(DataFailure) {
    guard String(validating: name, as: UTF8.self) != nil else { return leaveOut("its name is not UTF-8") }
    let status = try doing("examine") { () throws(Errno) in try directory.status(of: name) }
    switch status.type {
    case S_IFDIR:
      let below = try doing("open") { () throws(Errno) in try directory.openDirectoryToExamine(name) }
      try copyContents(of: below.fd)
    case S_IFREG: try copyFile(name, in: directory)
    case S_IFLNK: try copyLink(name, in: directory)
    case S_IFIFO: leaveOut("a fifo has no contents")
    case S_IFSOCK: leaveOut("a socket has no contents")
    default: leaveOut("a device has no contents")
    }
  }

  private func copyLink(_ name: [UInt8], in directory: FD) throws(DataFailure) {
    let link = try doing("examine") { () throws(Errno) in try directory.child(name) }
    let (status, target, flags) = try doing("examine") { () throws(Errno) in
      (try link.fd.status(), try link.fd.linkTarget(), try access.flags(of: link.fd))
    }
    var file = BackedUpFile(status)
    file.target = String(validating: target, as: UTF8.self)
    guard file.target != nil else { return leaveOut("it is a link whose target is not UTF-8") }
    if !flags.isEmpty { leaveOut("the link was copied, but not its flags (\(flags.words))") }
    try note(file)
    count.links += 1
  }

  private func copyFile(_ name: [UInt8], in directory: FD) throws(DataFailure) {
    let file = try doing("open") { () throws(Errno) in try directory.openToExamine(name) }
    let (status, found) = try doing("examine") { () throws(Errno) in
      (try file.fd.status(), try attributes(of: file.fd))
    }
    if found.isMarked { return }
    guard status.isRegular else { throw changed }
    let id = try newID()
    let copy = try explaining("write", path) { () throws(Errno) in
      let folder = try backup.openDirectory(BackupDomain.folder(of: id), makingWith: 0o700)
      return try folder.fd.open(id, O_RDWR | O_CREAT | O_EXCL, mode: 0o600)
    }
    var described = BackedUpFile(status)
    described.attributes = found.all
    described.size = try copyData(of: file.fd, to: copy.fd)
    try note(described, id)
    count.files += 1
    count.bytes = count.bytes.adding(clamped: described.size)
    progress(count)
  }

  /// Gives how long the copy is; a file that gets shorter meanwhile is copied again.
  private func copyData(of file: FD, to copy: FD) throws(DataFailure) -> Int64 {
    let before = count
    for _ in 0..<3 {
      let size = try doing("copy") { () throws(Errno) -> Int64? in
        try copy.truncateOpen(to: 0)
        let outcome = try contents.copy(from: file, try file.status(), to: copy) { copied in
          var now = before
          now.bytes = now.bytes.adding(clamped: copied)
          progress(now)
          return true
        }
        if case .cutShort = outcome { return nil }
        return Int64(try copy.status().st_size)
      }
      if let size { return size }
    }
    throw changed
  }

  // MARK: The list of files

  /// Where it is in its domain.
  private var relative: [UInt8] { Array(names.dropFirst(above).joined(separator: "/".utf8)) }

  private func newID() throws(DataFailure) -> String {
    do throws(BackupFlaw) {
      guard let domain else { throw BackupFlaw("") }
      return try domain.id(of: relative)
    } catch {
      throw .badBackup(path: path, reason: error.reason)
    }
  }

  private func note(_ file: BackedUpFile, _ known: String? = nil) throws(DataFailure) {
    let id: String
    if let known { id = known } else { id = try newID() }
    let relative = String(decoding: self.relative, as: UTF8.self)
    var archive = try? file.archive(of: relative)
    if archive.map({ $0.count > Self.longestArchive }) ?? true {
      leaveOut("it was copied without its extended attributes, of which there is too much")
      var bare = file
      bare.attributes = PropertyList.Dictionary()
      archive = try? bare.archive(of: relative)
    }
    guard let archive, let domain, let flags = file.flags else { throw changed }
    try Self.writing(path) { () throws(StoreError) in
      try manifest.add(id, domain: domain.text, path: relative, flags: flags, file: archive)
    }
  }

  /// The attributes that go along, the ACL and the flags among them, under the names that Macs have for them;
  /// and whether one leaves the file out.
  private func attributes(
    of object: FD
  ) throws(Errno) -> (all: PropertyList.Dictionary, isMarked: Bool) {
    var all = PropertyList.Dictionary()
    var isMarked = false
    try reader.read(from: object, where: { KeptAttributes.contains($0) }) { (name, value) throws(Errno) in
      let text = name.text
      isMarked = isMarked || BackupMark.allCases.contains { "\($0.name)" == text && $0.excludes(value) }
      // One whose name is no text goes with the file no further.
      if text.utf8.elementsEqual(name.buffer) { all[String(text.dropFirst(5))] = .data(Array(value)) }
    }
    if let acl = try access.acl(of: object) { all[BackedUpFile.aclName] = .data(acl.filesec) }
    let flags = try access.flags(of: object)
    if !flags.isEmpty { all[BackedUpFile.flagsName] = .data(Array(flags.words.utf8)) }
    return (all, isMarked)
  }

  // MARK: What went wrong

  private var place: String { names.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/") }

  private var changed: DataFailure { .notCopied(from: place, TreeCopyFailure(path: "", reason: .changed)) }

  private func leaveOut(_ reason: String) { omissions.append(.init(path: place, reason: reason)) }

  private func doing<Result: ~Copyable>(
    _ words: String, _ body: () throws(Errno) -> Result
  ) throws(DataFailure) -> Result {
    try explaining(words, place, body)
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO
package import Policy
package import Store

/// Copies a user's data as they are, in parts that belong together.
///
/// - Both sides are reached by descriptors and single names; no link is followed, no other filesystem
///   entered.
/// - Contents, holes, symbolic links, modes, times, attributes of users, ACLs and flags come over, and so do
///   several names of one file. Set-id bits do not: a copy may have another owner.
/// - What is copied is its owner's and nobody else's until it is finished, and gets its flags last, which
///   would stand against all else.
/// - Fifos and sockets are left out, or end it; devices always do, as does any failure. The caller removes
///   what there is by then.
package final class DataCopy {
  /// What is done about fifos and sockets, which hold nothing.
  package enum Emptiness: Sendable { case leftOut, refused }

  /// Something that did not come over, and why.
  package struct Omission: Codable, Equatable, Sendable {
    package let path: String
    package let reason: String
  }

  /// How it is done.
  package struct Rules {
    /// How ACLs and flags are read, and how they are written.
    package var source: SecurityAccess
    package var target: SecurityAccess
    /// Whose the copies are; nil for whoever makes them.
    package var owner: (uid: UInt32, gid: UInt32)?
    package var emptiness = Emptiness.leftOut
    /// Whether ACLs and flags come over.
    package var keepsSecurity = true
    /// Whether flags that are root's to set come over.
    package var keepsSystemFlags = ProcessID.user == 0
    package var keepsSetID = false
    /// Whether copies belong to those whose the originals are; for root alone.
    package var keepsOwners = false
    /// Whether what is copied itself gets its flags later, and what its ACL has against its removal.
    ///
    /// With them it might not be renamed any more. ``DataCopy/top`` is for that.
    package var leavesTopOpen = false
    /// Attributes that all copied files and directories get, whatever they had.
    package var marks: [(name: String, value: [UInt8])] = []
    package var depth = 250
    /// Called after each file, and now and then during a large one.
    package var progress: (TreeCopy.Count) -> Void = { _ in }

    package init(from source: SecurityAccess, to target: SecurityAccess) {
      self.source = source
      self.target = target
    }
  }

  package private(set) var count = TreeCopy.Count()
  package private(set) var omissions: [Omission] = []
  /// Why it has ended; the error that is thrown only carries it up.
  private var failure: TreeCopyFailure?

  let rules: Rules
  private let contents = ContentsCopy()
  private let attributes = AttributesCopy()
  private var severalNames = SeveralNames()
  private var path: [[UInt8]] = []
  private var depthOfTop = 0
  /// What was copied last, whatever its name leads to by now, with its ACL and flags; for
  /// ``Rules/leavesTopOpen``.
  package private(set) var top: Top?
  /// The directory that the last copy was begun as, whatever its name leads to by now; nil for anything else.
  package private(set) var made: SharedFD?

  package struct Top {
    package let copy: SharedFD
    package fileprivate(set) var acl: AccessControlList?
    package fileprivate(set) var flags: FileFlags = []
  }

  package init(_ rules: Rules) { self.rules = rules }

  /// Copies what is called `name` in one directory to the same or another name in another one, which must be
  /// free.
  ///
  /// `place` is where that is, for messages and omissions.
  package func copy(
    _ name: [UInt8], from source: FD, to newName: [UInt8]? = nil, in target: FD, place: [String] = []
  ) throws(TreeCopyFailure) {
    begin(at: place.map { Array($0.utf8) } + [name])
    do throws(Errno) {
      let device = try doing("examine") { () throws(Errno) in UInt64(try source.status().st_dev) }
      try copyEntry(name, to: newName ?? name, from: source, in: target, device)
    } catch {
      throw failure ?? TreeCopyFailure(path: "", reason: .failed(doing: "copy", error))
    }
  }

  /// Copies an object that was found before, a file or a directory, under a new name.
  ///
  /// `name` is what it was called, for messages.
  package func copy(
    _ object: FD, named name: String, to newName: String, in target: FD
  ) throws(TreeCopyFailure) {
    begin(at: [Array(name.utf8)])
    do throws(Errno) {
      let status = try doing("examine") { () throws(Errno) in try object.status() }
      let device = UInt64(status.st_dev)
      try newName.withName { (newName) throws(Errno) in
        switch status.type {
        case S_IFDIR:
          let directory = try doing("open") { () throws(Errno) in
            try object.reopened(O_RDONLY | O_DIRECTORY)
          }
          try copyContents(of: directory.fd, to: newName, in: target, device)
        case S_IFREG:
          let file = try doing("open") { () throws(Errno) in try object.reopened(O_RDONLY | O_NONBLOCK) }
          try copyFile(file.fd, to: newName, in: target, device)
        default: throw fail(.special(status))
        }
      }
    } catch {
      throw failure ?? TreeCopyFailure(path: "", reason: .failed(doing: "copy", error))
    }
  }

  /// Copies a file that is open for reading under a name.
  package func copy(file: SharedFD, named name: [UInt8], in target: FD) throws(TreeCopyFailure) {
    begin(at: [name])
    do throws(Errno) {
      try file.use { (file) throws(Errno) in
        let device = try doing("examine") { () throws(Errno) in UInt64(try file.status().st_dev) }
        try name.withName { (name) throws(Errno) in try copyFile(file, to: name, in: target, device) }
      }
    } catch {
      throw failure ?? TreeCopyFailure(path: "", reason: .failed(doing: "copy", error))
    }
  }

  /// Copies a directory that is open, with all that is in it, to a new one.
  package func copy(tree: FD, to name: Name, in target: FD) throws(TreeCopyFailure) {
    path = []
    do throws(Errno) {
      let reading = try doing("open") { () throws(Errno) in try tree.reopened(O_RDONLY | O_DIRECTORY) }
      let device = try doing("examine") { () throws(Errno) in UInt64(try reading.fd.status().st_dev) }
      try copyContents(of: reading.fd, to: name, in: target, device)
    } catch {
      throw failure ?? TreeCopyFailure(path: "", reason: .failed(doing: "copy", error))
    }
  }

  /// Gives those files their flags that have more names than were found.
  package func finish() throws(TreeCopyFailure) {
    do throws(Errno) {
      try severalNames.finish { (file, flags) throws(Errno) in try rules.target.setFlags(flags, on: file) }
    } catch {
      throw TreeCopyFailure(path: "", reason: .failed(doing: "set the flags of files in", error))
    }
  }

  private func begin(at path: [[UInt8]]) {
    self.path = path
    depthOfTop = path.count
    (failure, top, made) = (nil, nil, nil)
  }

  // MARK: One thing

  private func copyEntry(
    _ name: [UInt8], to newName: [UInt8], from source: FD, in target: FD, _ device: UInt64
  ) throws(Errno) {
    try name.withName { (name) throws(Errno) in
      try newName.withName { (newName) throws(Errno) in
        guard name.isComponent, newName.isComponent else {
          throw fail(.badName("it has a special meaning in a path"))
        }
        let status = try doing("examine") { () throws(Errno) in try source.status(of: name) }
        switch status.type {
        case S_IFDIR: try copyDirectory(name, from: source, to: newName, in: target, device)
        case S_IFREG:
          // O_NONBLOCK: what was put in its place meanwhile must not stop us.
          let file = try doing("open") { () throws(Errno) in try source.open(name, O_RDONLY | O_NONBLOCK) }
          try copyFile(file.fd, to: newName, in: target, device)
        case S_IFLNK: try copyLink(name, from: source, to: newName, in: target)
        case S_IFIFO where rules.emptiness == .leftOut: leaveOut("a fifo has no contents")
        case S_IFSOCK where rules.emptiness == .leftOut: leaveOut("a socket has no contents")
        default: throw fail(.special(status))
        }
      }
    }
  }

  private func copyDirectory(
    _ name: Name, from source: FD, to newName: Name, in target: FD, _ device: UInt64
  ) throws(Errno) {
    guard path.count <= rules.depth else { throw fail(.tooDeep(rules.depth)) }
    let directory = try doing("open") { () throws(Errno) in try source.open(name, O_RDONLY | O_DIRECTORY) }
    try copyContents(of: directory.fd, to: newName, in: target, device)
  }

  private func copyContents(
    of directory: FD, to newName: Name, in target: FD, _ device: UInt64
  ) throws(Errno) {
    let status = try doing("examine") { () throws(Errno) in try directory.status() }
    guard UInt64(status.st_dev) == device else { throw fail(.otherFilesystem) }
    let entries = try doing("list") { () throws(Errno) in try directory.entries() }
    let copy = try doing("create a copy of") { () throws(Errno) in
      try target.makeAndOpenDirectory(newName)
    }
    count.directories += 1
    if path.count == depthOfTop {
      made = SharedFD(try doing("create a copy of") { () throws(Errno) in try copy.fd.duplicated() })
    }
    for entry in entries {
      path.append(entry.name)
      try copyEntry(entry.name, to: entry.name, from: directory, in: copy.fd, device)
      path.removeLast()
    }
    try finish(copy.fd, as: directory, status)
    try setFlags(of: copy.fd, as: directory)
  }

  private func copyFile(
    _ file: FD, to newName: Name, in target: FD, _ device: UInt64
  ) throws(Errno) {
    let status = try doing("examine") { () throws(Errno) in try file.status() }
    guard status.isRegular else { throw fail(.changed) }
    guard UInt64(status.st_dev) == device else { throw fail(.otherFilesystem) }
    if try doing(
      "create a copy of",
      { () throws(Errno) in
        try severalNames.link(status, into: target, as: newName) { (file, flags) throws(Errno) in
          try rules.target.setFlags(flags, on: file)
        }
      })
    {
      count.files += 1
      return
    }
    let copy = try doing("create a copy of") { () throws(Errno) in
      try target.open(newName, O_RDWR | O_CREAT | O_EXCL, mode: 0o600)
    }
    let before = count.bytes
    let outcome = try doing("copy") { () throws(Errno) in
      try contents.copy(from: file, status, to: copy.fd) { copied in
        count.bytes = before.adding(clamped: copied)
        rules.progress(count)
        return true
      }
    }
    guard outcome == .whole else { throw fail(.changed) }
    count.bytes = before.adding(clamped: Int64(status.st_size))
    try finish(copy.fd, as: file, status)
    let flags = try flags(of: file)
    // One with flags can't be given further names.
    if try !severalNames.note(status, copy.fd, flags) { try setFlags(flags, of: copy.fd) }
    count.files += 1
    rules.progress(count)
  }

  private func copyLink(
    _ name: Name, from source: FD, to newName: Name, in target: FD
  ) throws(Errno) {
    let link = try doing("examine") { () throws(Errno) in try source.child(name) }
    let flags = try flags(of: link.fd)
    let copy = try doing("copy the link") { () throws(Errno) in
      let status = try link.fd.status()
      var place = try link.fd.linkTarget()
      if case .package = rules.source { place = LinkText.decoded(place) }
      try target.makeSymlink(newName, to: place)
      let copy = try target.child(newName)
      if let owner = owner(status) { try Self.changeOwner(of: copy.fd, to: owner) }
      try copy.fd.changeTimes(access: .set(status.st_atim), modification: .set(status.st_mtim))
      return copy
    }
    do throws(Errno) {
      if !flags.isEmpty { try setFlags(flags, of: copy.fd) }
    } catch {
      // Linux has attributes of users on files and directories alone.
      failure = nil
      leaveOut("the link was copied, but its flags (\(flags.words)) can't be stored there")
    }
    count.links += 1
  }

  // MARK: What is beside the contents

  /// All but the flags.
  ///
  /// The owner first, as a change of owner takes bits of the mode away; the ACL last, as it might stand
  /// against the rest.
  private func finish(_ copy: FD, as original: FD, _ status: FileStatus) throws(Errno) {
    try doing("finish the copy of") { () throws(Errno) in
      try attributes.copy(from: original, to: copy, where: KeptAttributes.contains)
      for mark in rules.marks { try AttributesCopy.set(mark.name, to: mark.value, on: copy) }
      if let owner = owner(status) { try Self.changeOwner(of: copy, to: owner) }
      let dropped: FileMode = rules.keepsSetID ? 0 : S_ISUID | S_ISGID
      var mode = status.permissions
      if case .package = rules.source { mode = try ClosedMode.mode(of: original, status) }
      try copy.changeMode(mode & ~dropped)
      try copy.changeTimes(access: .set(status.st_atim), modification: .set(status.st_mtim))
    }
    guard rules.keepsSecurity else { return }
    var acl = try doing("read the ACL of") { () throws(Errno) in
      try rules.source.acl(of: original)
    }
    if isOpenTop {
      let shared = try doing("finish the copy of") { () throws(Errno) in SharedFD(try copy.duplicated()) }
      top = Top(copy: shared, acl: acl)
      acl = acl?.withoutRefusalOfRemoval
    }
    guard let acl else { return }
    try doing("set the ACL on the copy of") { () throws(Errno) in
      try rules.target.setACL(acl, on: copy)
    }
  }

  private var isOpenTop: Bool { rules.leavesTopOpen && path.count == depthOfTop }

  private func owner(_ status: FileStatus) -> (uid: UInt32, gid: UInt32)? {
    rules.keepsOwners ? (status.st_uid, status.st_gid) : rules.owner
  }

  private static func changeOwner(of copy: FD, to owner: (uid: UInt32, gid: UInt32)) throws(Errno) {
    let made = try copy.status()
    if made.st_uid != owner.uid || made.st_gid != owner.gid {
      try copy.changeOwner(uid: owner.uid, gid: owner.gid)
    }
  }

  private func flags(of original: FD) throws(Errno) -> FileFlags {
    guard rules.keepsSecurity else { return [] }
    let flags = try doing("read the flags of") { () throws(Errno) in try rules.source.flags(of: original) }
    let kept = rules.keepsSystemFlags ? flags : flags.subtracting(.rootSettable)
    if kept != flags {
      leaveOut("it was copied, but only root can set its flags \(flags.subtracting(kept).words)")
    }
    guard isOpenTop else { return kept }
    top?.flags = kept
    return []
  }

  private func setFlags(of copy: FD, as original: FD) throws(Errno) {
    try setFlags(try flags(of: original), of: copy)
  }

  private func setFlags(_ flags: FileFlags, of copy: FD) throws(Errno) {
    if flags.isEmpty { return }
    try doing("set the flags on the copy of") { () throws(Errno) in
      try rules.target.setFlags(flags, on: copy)
    }
  }

  // MARK: What went wrong

  private var place: String { path.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/") }

  private func leaveOut(_ reason: String) { omissions.append(Omission(path: place, reason: reason)) }

  private func doing<Result: ~Copyable>(
    _ words: String, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    do throws(Errno) { return try body() } catch { throw fail(.failed(doing: words, error)) }
  }

  /// Notes why it ends, if that is not known already; what is thrown is of no more use.
  private func fail(_ reason: TreeCopyFailure.Reason) -> Errno {
    if failure == nil { failure = TreeCopyFailure(path: place, reason: reason) }
    return .EIO
  }
}

extension AccessControlList {
  /// The same but for what forbids to remove or rename what has it; nil if nothing is left.
  fileprivate var withoutRefusalOfRemoval: AccessControlList? {
    var open = self
    open.entries = entries.compactMap { entry in
      guard entry.kind == .deny, entry.rights.contains(.delete) else { return entry }
      var entry = entry
      entry.rights.remove(.delete)
      return entry.rights.isEmpty ? nil : entry
    }
    return open.entries.isEmpty ? nil : open
  }
}

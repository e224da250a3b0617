// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy

/// What is served from a read-only region is what was sealed.
///
/// Each object is held against the seal when it is found, and a file's bytes before it is first opened.
final class SealChecks: Sendable {
  private let volume: Volume
  private let nodes: NodeTable
  private let view: UInt32

  init(_ volume: Volume, _ nodes: NodeTable, view: UInt32) {
    self.volume = volume
    self.nodes = nodes
    self.view = view
  }

  /// What a seal says of a node; nil where none speaks of it.
  ///
  /// What another worker knew of nodes that it has left is found out again: by their names, which are looked
  /// for in the directories that they were found in. ESTALE if they are not there any more.
  private func sealed(_ id: NodeID) throws(Errno) -> SealedNode? {
    if let known = nodes.sealed(id) { return known }
    guard nodes.isTakenOver, let parent = nodes.parentInReadOnlyRegion(of: id) else { return nil }
    let object = try nodes.referenceAnywhere(to: id, isNamed: false)
    let directory = try nodes.referenceAnywhere(to: parent, isNamed: false)
    guard let name = try directory.fd.name(ofInode: object.number.inode) else { throw .ESTALE }
    let found = try name.withName { (name) throws(Errno) in
      try find(name, object.fd, try object.fd.status(), in: directory)
    }
    if let found { nodes.seal(id, found) }
    return found
  }

  /// What the seal says of an object that was just found; nil where there is no seal, and EIO where it should
  /// not be there.
  func find(
    _ name: Name, _ object: FD, _ status: FileStatus, in directory: borrowing NodeTable.Reference
  ) throws(Errno) -> SealedNode? {
    guard directory.zone.isReadOnlyRegion else {
      let regions = volume.readOnlyRegions
      // A file is no app.
      let unknown = status.isDirectory ? regions.unknownApp(in: directory.number, directory.zone) : nil
      guard let region = regions.find(name, in: directory.number) ?? unknown else { return nil }
      let seal = region.seal(of: ObjectNumber(status), in: regions)
      guard status.isDirectory else { throw refusal(Finding(.typeChanged), by: seal) }
      return SealedNode(seal, .root)
    }
    guard let parent = try sealed(directory.id) else { return nil }
    guard let contents = parent.seal.contents(in: parent.position == .root ? directory.fd : nil) else {
      // Nobody knows what is to be here; what is below may still be listed.
      guard status.isDirectory else { throw refusal() }
      return SealedNode(parent.seal, .unsealed(path: ""))
    }
    let position: SealedPosition
    do throws(Finding) {
      position = try contents.position(of: name.buffer, type: status.type, in: parent.position)
    } catch {
      throw refusal(error, by: parent.seal)
    }
    if !status.isRegular, let finding = contents.finding(about: object, status, at: position) {
      throw refusal(finding, by: parent.seal)
    }
    guard let nested = contents.nested(at: position) else { return SealedNode(parent.seal, position) }
    let path = contents.path(of: position)
    return parent.seal.nested(nested, at: position, path: path).map { SealedNode($0, .root) }
  }

  /// The error for a name in a read-only region that nothing has: ENOENT, or EIO if there should be
  /// something.
  func absence(of name: Name, in directory: borrowing NodeTable.Reference) -> Errno {
    guard directory.zone.isReadOnlyRegion else {
      guard let region = volume.readOnlyRegions.find(name, in: directory.number), region.isStable else {
        return .ENOENT
      }
      volume.readOnlyRegions.tell("/\(region.path): \(Finding(.missing).message)")
      return refusal()
    }
    let known: SealedNode?
    do throws(Errno) { known = try sealed(directory.id) } catch { return error }
    guard let parent = known else { return .ENOENT }
    guard let contents = parent.seal.contents(in: parent.position == .root ? directory.fd : nil) else {
      // Nobody knows whether there should be something.
      return refusal()
    }
    guard let finding = contents.absence(of: name.buffer, in: parent.position) else { return .ENOENT }
    return refusal(finding, by: parent.seal)
  }

  /// Throws unless a link leads where it was sealed to lead.
  func checkLink(_ node: NodeID, _ target: UnsafeRawBufferPointer) throws(Errno) {
    guard let sealed = try sealed(node) else { return }
    guard let contents = sealed.seal.loadedContents else { throw refusal() }
    if let finding = contents.finding(target: target, at: sealed.position) {
      throw refusal(finding, by: sealed.seal)
    }
  }

  /// Whether an object belongs to an installed app that is to run in a sandbox.
  func isSandboxed(_ object: borrowing NodeTable.Reference) throws(Errno) -> Bool {
    try sealed(object.id)?.seal.isSandboxed ?? false
  }

  // MARK: Bytes

  /// Files up to this size are read by the worker that is asked to open them.
  private static var smallFile: Int64 { 1 << 20 }

  /// What stands in the way of opening a file in a read-only region.
  enum SealedOpening {
    /// Nothing: what is there is what was sealed.
    case free
    /// It must be read first, which takes a while.
    case afterReading
  }

  /// Throws unless a file's bytes are those that were sealed, as far as that is known or soon found out.
  ///
  /// `mayWait` says whether the answer may be that it takes a while.
  func checkBytes(
    _ object: borrowing NodeTable.Reference, _ status: FileStatus, mayWait: Bool
  ) throws(Errno) -> SealedOpening {
    guard let sealed = try sealed(object.id) else { return .free }
    if let verdict = sealed.verdict, verdict.stamp == FileStamp(status) {
      guard verdict.isGood else { throw refusal() }
      return .free
    }
    guard let contents = sealed.seal.loadedContents else { throw refusal() }
    guard contents.isSealed(sealed.position) else { return .free }
    // The file was removed or replaced. On ESTALE the kernel looks up the path again.
    if status.st_nlink == 0, sealed.seal.isInstalled { throw .ESTALE }
    if mayWait, status.st_size > Self.smallFile { return .afterReading }
    try readForSeal(object, sealed, contents)
    return .free
  }

  /// Reads a large file for its seal, and does `then`.
  func readBytes(_ node: NodeID, for user: UInt32, then: @escaping @Sendable () -> Void) {
    volume.reading.read(SealReading.Key(view: view, node: node.raw), for: user) {
      guard let object = try? self.nodes.reference(to: node), let sealed = self.nodes.sealed(node),
        let contents = sealed.seal.loadedContents
      else { return }
      // What it throws is noted, and found again by who asked.
      try? self.readForSeal(object, sealed, contents)
    } then: {
      then()
    }
  }

  private func readForSeal(
    _ object: borrowing NodeTable.Reference, _ sealed: SealedNode, _ contents: any SealedContents
  ) throws(Errno) {
    let fd = object.fd
    let file = try nodes.openWithRoom { () throws(Errno) in
      try volume.openForData(fd, O_RDONLY | O_NONBLOCK, sparingTime: true)
    }
    let stamp = FileStamp(try file.fd.status())
    let finding = contents.finding(in: file.fd, at: sealed.position)
    // Someone is writing to it behind us: whatever was read, it is not what is there.
    guard FileStamp(try file.fd.status()) == stamp else {
      throw refusal(Finding(.changed, contents.path(of: sealed.position)), by: sealed.seal)
    }
    if stamp.isSettled {
      nodes.note((isGood: finding == nil, stamp: stamp), of: object.id, as: sealed)
    }
    guard let finding else { return }
    sealed.seal.tell(finding)
    throw refusal()
  }

  private func refusal(_ finding: Finding, by seal: ServedSeal) -> Errno {
    seal.tellOnce(finding)
    return refusal()
  }

  private func refusal() -> Errno {
    volume.readOnlyRegions.noteRefusal()
    return .EIO
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import Fuse
internal import Glibc
package import LinuxIO
internal import Policy

// What is known about an object: attributes, and who may ask.

extension View {
  package func attributes(of node: NodeID, handle: HandleID?, by caller: Caller) throws(Errno) -> Attributes {
    let object = try object(node, handle)
    let status = try object.fd.status()
    try authorizeLook(at: object, status, handle: handle, by: caller)
    return attributes(status, of: node, for: caller)
  }

  package func extendedStatus(
    of node: NodeID, handle: HandleID?, into bytes: UnsafeMutableRawPointer, by caller: Caller
  ) throws(Errno) -> Double {
    let object = try object(node, handle)
    let status = try object.fd.status()
    try authorizeLook(at: object, status, handle: handle, by: caller)
    // Read when it has been noted that the kernel will cache it.
    let validity = attributes(status, of: node, for: caller).validity
    try object.fd.extendedStatus(mask: CLX_STATX_BASIC_STATS | CLX_STATX_BTIME, into: bytes)
    if asks(node) {
      hidePrivate(inStatx: bytes)
    } else if isOnTheWay(node, status) {
      hideContents(inStatx: bytes)
    }
    volume.show(
      inStatx: bytes, object.number, in: object.zone, isOnVolume: object.isOnVolume, to: caller)
    return validity
  }

  /// The object that is looked at; with a handle, EIO for what was open on a volume that has left the tree.
  ///
  /// Nobody walks a path again for that on ESTALE.
  private func object(_ node: NodeID, _ handle: HandleID?) throws(Errno) -> NodeTable.Reference {
    do throws(Errno) {
      return try nodes.reference(to: node)
    } catch {
      guard error == .ESTALE, handle != nil, let number = nodes.with(node, { $0.volume }),
        volume.attached.hasLeft(numbered: number)
      else { throw error }
      throw .EIO
    }
  }

  /// Throws unless the caller may see the object's attributes, which only an ACL can forbid.
  ///
  /// With a handle the kernel itself asks, for a read or a seek in a file that is open.
  private func authorizeLook(
    at node: borrowing NodeTable.Reference, _ status: FileStatus, handle: HandleID?, by caller: Caller
  ) throws(Errno) {
    if handle != nil { return }
    let object = try object(status, node)
    if object.hasACL { try gate.authorize([.readAttributes, .readSecurity], on: object, by: caller) }
  }

  package func access(_ node: NodeID, mask: Int32, by caller: Caller) throws(Errno) {
    let object = try nodes.reference(to: node)
    let status = try object.fd.status()
    var rights = Rights.nothing
    if mask & R_OK != 0 { rights.insert(.read) }
    if mask & W_OK != 0 { rights.formUnion(status.isDirectory ? [.addFile, .addSubdirectory] : .write) }
    if mask & X_OK != 0 { rights.insert(.execute) }
    try gate.authorize(rights, on: self.object(status, object), by: caller)
    // chdir(2) asks like this, and so does access(2).
    if status.isDirectory, mask & X_OK != 0, !audience.isPrivate {
      volume.workingDirectories.entered(by: caller)
      nodes.noteEntered(node, by: caller.pid)
    }
  }

  package func statistics(of node: NodeID) throws(Errno) -> FilesystemStatus {
    let object = try nodes.reference(to: node)
    return try object.fd.filesystemStatus()
  }

  /// The attributes with the time for which they hold.
  ///
  /// `withName` says that they are part of the answer that makes the node known to the kernel, which will
  /// keep the name.
  func attributes(
    _ status: FileStatus, of node: NodeID, for caller: Caller, withName: Bool = false
  ) -> Attributes {
    var attributes = ownAttributes(status, of: node, withName: withName)
    let place = volume.attached.isEmpty ? nil : nodes.with(node) { ($0.zone, $0.isOnVolume) }
    guard case (let zone, true)? = place else { return attributes }
    attributes.status = volume.shown(attributes.status, in: zone, isOnVolume: true, to: caller)
    // The kernel would show everyone's own to others.
    if zone.hasNoOwners, !audience.isPrivate, volume.attached.isForAll(ObjectNumber(status)) {
      attributes.validity = 0
    }
    return attributes
  }

  private func ownAttributes(_ status: FileStatus, of node: NodeID, withName: Bool) -> Attributes {
    var attributes = trueAttributes(status, of: node, withName: withName)
    if isOnTheWay(node, status) { attributes.status = attributes.status.withoutContents }
    return attributes
  }

  private func trueAttributes(_ status: FileStatus, of node: NodeID, withName: Bool) -> Attributes {
    if asks(node) { return Attributes(status.withoutPrivate, validity: 0) }
    if isOfOrdinaryUser, status.isDevice { return Attributes(status.withoutDevice, validity: 0) }
    let validity = attributeValidity(status, of: node, withName: withName)
    guard validity > 0, volume.views.areSeveral else { return Attributes(status, validity: validity) }
    // From here on others tell the kernel what they change. What they had changed before is looked at now.
    guard let object = try? nodes.reference(to: node, isNamed: false), let now = try? object.fd.status(),
      !mayBeWrittenElsewhere(now, object)
    else { return Attributes(status, validity: 0) }
    return Attributes(now, validity: validity)
  }

  /// Whether it belongs to an ordinary user of root's store, who has its mount and may take the flags of that
  /// away: then no device can be opened there, whatever they are.
  private var isOfOrdinaryUser: Bool {
    volume.settings.isSystem && audience.user.map { $0 != 0 } ?? false
  }

  /// Whether the file may be changing without a word to this view's kernel.
  private func mayBeWrittenElsewhere(_ status: FileStatus, _ object: borrowing NodeTable.Reference) -> Bool {
    guard status.isRegular, !object.zone.isReadOnlyRegion else { return false }
    switch writers.elsewhere(of: object.number) {
    case .none: return false
    case .open: return true
    case .perhapsMapped: return isHeldForWriting(object.id)
    }
  }

  /// For how long the kernel may answer with these attributes itself.
  ///
  /// With passthrough we see no write; but the kernel does, forgets the attributes by itself, and drops a
  /// reply of ours that a write has overtaken. What it does not see is a store through a memory map. So
  /// nothing is kept while the file is open in a way that lets it be mapped for writing, and since a map can
  /// outlive its descriptor, the backing filesystem is asked once after the last such close whether the file
  /// is still held open for writing.
  ///
  /// Nor is anything kept where an ACL may refuse someone to see it: the kernel would not ask.
  private func attributeValidity(_ status: FileStatus, of node: NodeID, withName: Bool) -> Double {
    if nodes.with(node, { $0.flags.contains(.securityKnown) }) == false,
      let object = try? nodes.reference(to: node, isNamed: false)
    {
      learnSecurity(of: object)
    }
    let now = withName ? coarseSeconds() : 0
    let isOnVolume = nodes.with(node) { $0.isOnVolume } ?? false
    if isOnVolume, hasObjectForEachName(status) { return 0 }
    // There the kernel sees what is stored through a map: its pages are the file's own.
    let isSeen = isOnVolume && !usesPassthrough(on: ObjectNumber(status))
    let cacheSeconds = min(
      volume.settings.cacheSeconds, isOnVolume ? AttachedVolumes.cacheSeconds : .infinity)
    let noted = nodes.with(node) { node -> (mayChange: Bool, ask: Bool) in
      // Not known: it has been changed just now, or can't be read.
      let isForAll = node.flags.isDisjoint(with: .hidesAttributes) && node.flags.contains(.securityKnown)
      if !isForAll || node.mappers > 0 && !isSeen { return (true, false) }
      if node.flags.contains(.mayBeMapped) && !isSeen { return (true, true) }
      if cacheSeconds > 0 { node.flags.insert(.attributesCached) }
      if withName { node.entrySentAt = now }
      return (false, false)
    }
    guard let noted else { return 0 }
    guard noted.mayChange else { return cacheSeconds }
    guard noted.ask, status.isRegular, !isHeldForWriting(node) else { return 0 }
    let isCacheable = nodes.with(node) { node in
      guard node.mappers == 0, node.flags.contains(.securityKnown), !node.flags.contains(.hidesAttributes)
      else { return false }
      node.flags.remove(.mayBeMapped)
      writers.unmapped(node.number)
      node.flags.insert(.attributesCached)
      if withName { node.entrySentAt = now }
      return true
    }
    return isCacheable == true ? cacheSeconds : 0
  }

  /// Whether it has several names, and what serves it may have an object for each of them: what is done by
  /// one name changes the attributes by another.
  private func hasObjectForEachName(_ status: FileStatus) -> Bool {
    status.isRegular && status.st_nlink > 1
      && volume.attached.volume(onDevice: ObjectNumber(status).device)?.engine.usesHandles == false
  }

  func isHeldForWriting(_ node: NodeID) -> Bool {
    guard let object = try? nodes.reference(to: node, isNamed: false) else { return true }
    // O_NONBLOCK: where someone has a lease on the file, opening it would wait for them.
    guard let file = try? object.fd.reopened(O_RDONLY | O_NONBLOCK) else { return true }
    return file.fd.isOpenForWriting()
  }
}

extension FileStatus {
  fileprivate var isDevice: Bool { type == S_IFCHR || type == S_IFBLK }

  /// The same of a device that there is none of.
  fileprivate var withoutDevice: FileStatus {
    var status = self
    status.st_rdev = 0
    return status
  }
}

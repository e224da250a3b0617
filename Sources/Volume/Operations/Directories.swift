// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import Fuse
internal import Glibc
package import LinuxIO
internal import Policy

// Listings. Offsets are the backing filesystem's own, which stay true while entries come and go; where they
// may not, they are places in a `KeptListing`.

extension View {
  package func openDirectory(_ node: NodeID, by caller: Caller) throws(Errno) -> Opened {
    memory.resolveDoubt(of: node)
    releaseUnanswered(caller.request)
    let object = try nodes.reference(to: node)
    let judged = try self.object(try judgedStatus(of: object), object)
    // The kernel asks only of directories; behind our back it may be one no more.
    guard judged.isDirectory else { throw .ENOTDIR }
    try gate.authorize(.list, on: judged, by: caller)
    let handle = try addDirectory(object, by: caller)
    if judged.zone == .servers { volume.attached.tellOfLook() }
    // What it lists can change without a change of the directory, or without our doing.
    let isOfOthers = object.isOnVolume && !isAlone(object)
    if volume.attached.mayBeListed(in: object.number, judged.zone) || isOfOthers
      || placesShown(in: node, .known) != nil
    {
      return Opened(handle: handle, mode: [])
    }
    // Who opens a directory was asked above, so a listing that the kernel kept from before may be shown to
    // them. If another view has changed it since, it is read again, whatever its times say. To show it the
    // kernel first looks at the directory's attributes, in the caller's name: where those may be refused, it
    // asks for the listing instead.
    if mayRefuseAttributes(judged) || isForBackup { return Opened(handle: handle, mode: []) }
    let isUnchanged = !object.isOnVolume || isUnchanged(object, by: object.fd, isDirectory: true)
    let keeps = memory.mayKeepContents(of: node) && isUnchanged
    return Opened(handle: handle, mode: keeps ? [.keepCache, .cacheListing] : .cacheListing)
  }

  package func readDirectory(
    _ node: NodeID, handle: HandleID, after offset: Int64, into writer: inout DirectoryWriter,
    by caller: Caller
  ) throws(Errno) {
    // It is looked at once for a listing, whose pages belong together.
    if let places = placesShown(in: node, offset == 0 ? .again : .known) {
      return try list(places, in: node, after: offset, into: &writer, by: caller)
    }
    let parent = try nodes.reference(to: node)
    if parent.zone.holdsVolumes {
      return try listVolumes(in: parent, after: offset, into: &writer, by: caller)
    }
    let opened = try directories.find(handle)
    try descriptor(of: handle).use { (directory) throws(Errno) in
      try list(directory, opened, parent, after: offset, into: &writer, by: caller)
    }
  }

  private func list(
    _ directory: FD, _ opened: OpenDirectory, _ parent: borrowing NodeTable.Reference, after offset: Int64,
    into writer: inout DirectoryWriter,
    by caller: Caller
  ) throws(Errno) {
    let status = try judgedStatus(of: parent)
    // Attributes are for those who could look each entry up.
    let judged = try object(status, parent)
    let withAttributes =
      writer.withAttributes && gate.denial(of: .search, on: judged, to: caller) == nil
      && !peers.know(parent.number)
      && !volume.attached.mayBeListed(in: parent.number, parent.zone)
    let validity = withAttributes ? listedValidity(in: parent, judged) : 0
    if let listing = opened.listing, keepsNames(of: parent.number),
      let names = try listing.names(
        of: directory, from: offset, once: isForBackup, volume.budget, by: opened.payer)
    {
      if offset == 0 { held?.noteListed(names.count, of: parent.number) }
      let isAgain = withAttributes && offset == 0 && memory.kept.listed.isAgain(parent.id)
      return names.list(from: offset) { found, next in
        guard writer.hasRoom(for: found.name) else { return false }
        // Without a number it can't be found out whether the kernel knows it, so each is looked up.
        let isTold = withAttributes && !(isAgain && found.inode == Self.unknownInode)
        add(found, next, in: parent, status, isTold ? validity : nil, to: &writer, by: caller)
        return true
      }
    }
    // In pages a name may come twice, and restic gives up the whole backup where it sees that. This directory
    // alone it leaves out, and names it.
    if isForBackup { throw .EOVERFLOW }
    _ = try directory.seek(offset, SEEK_SET)
    // What is read and then has no room is read again for the next page, and ext4 sorts all that it reads.
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: max(writer.roomInEntries, 1024), alignment: 16)
    defer { buffer.deallocate() }
    var listed = 0
    defer { opened.listing?.listed(listed) }
    while true {
      let count = try directory.readDirectory(into: buffer)
      guard count > 0 else { return }
      var entries = DirectoryEntries(
        UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<count]))
      while let found = entries.next() {
        guard writer.hasRoom(for: found.name) else { return }
        listed += 1
        add(found, found.next, in: parent, status, withAttributes ? validity : nil, to: &writer, by: caller)
      }
    }
  }

  /// What libfuse lists where its program has no numbers.
  private static var unknownInode: UInt64 { 0xffff_ffff }

  package func releaseDirectory(_ node: NodeID, handle: HandleID) {
    guard let directory = directories.remove(handle) else { return }
    defer { directories.forget(handle) }
    volume.listings.remove(handle, of: number)
    giveBack(directory)
  }

  /// Gives back what an open directory counts for.
  func giveBack(_ directory: OpenDirectory) {
    directory.listing?.giveBack(to: volume.budget, by: directory.payer)
    volume.budget.give(.openDirectories, by: directory.payer)
    if directory.descriptor != nil { volume.budget.give(.descriptors, by: directory.payer) }
  }

  /// Nothing stands for a directory but a few bytes, unless it must keep its descriptor.
  private func addDirectory(_ object: borrowing NodeTable.Reference, by caller: Caller) throws(Errno)
    -> HandleID
  {
    let payer = payer(caller)
    try volume.budget.take(.openDirectories, by: payer)
    do throws(Errno) {
      guard keepsListingOpen(object) else {
        return directories.add(
          OpenDirectory(
            node: object.id, payer: payer, request: caller.request, descriptor: nil, listing: nil))
      }
      try volume.budget.take(.descriptors, by: payer)
      do throws(Errno) {
        let opened = SharedFD(try openListing(object))
        return directories.add(
          OpenDirectory(
            node: object.id, payer: payer, request: caller.request, descriptor: opened,
            listing: keepsNames(of: object.number) ? KeptListing(bound: listingBound(of: object.id)) : nil))
      } catch {
        volume.budget.give(.descriptors, by: payer)
        throw error
      }
    } catch {
      volume.budget.give(.openDirectories, by: payer)
      throw error
    }
  }

  /// Whether a program answers for it, which may count names.
  private func isServed(_ object: ObjectNumber) -> Bool {
    volume.attached.queue(ofDevice: object.device) != nil
  }

  /// Whether a listing is read at once, and its pages are served from that.
  private func keepsNames(of directory: ObjectNumber) -> Bool { isForBackup || isServed(directory) }

  private func listingBound(of directory: NodeID) -> KeptListing.Bound {
    var bound = KeptListing.Bound()
    if let held { bound.names = min(bound.names, held.mostNames(in: nodes.directories(above: directory))) }
    return bound
  }

  /// Whether a directory must stay open from opendir to closedir: where its offsets would mean something else
  /// after that, the daemon might not be let in again, or its names are kept.
  private func keepsListingOpen(_ object: borrowing NodeTable.Reference) -> Bool {
    !volume.listingsLast || !volume.settings.isSystem || object.number.device != volume.device || isForBackup
  }

  /// An open directory's descriptor; opened again if it was closed since it was last read.
  private func descriptor(of handle: HandleID) throws(Errno) -> SharedFD {
    let directory = try directories.find(handle)
    if let kept = directory.descriptor ?? volume.listings.find(handle, of: number) { return kept }
    let object = try nodes.reference(to: directory.node)
    let opened = SharedFD(try openListing(object))
    volume.listings.keep(opened, for: handle, of: number)
    return opened
  }

  private func openListing(_ object: borrowing NodeTable.Reference) throws(Errno) -> OwnedFD {
    let fd = object.fd
    let isReadOnly = object.zone.isReadOnlyRegion
    return try nodes.openWithRoom { () throws(Errno) in try volume.openForListing(fd, sparingTime: isReadOnly)
    }
  }

  package func synchronizeDirectory(_ node: NodeID, handle: HandleID, dataOnly: Bool) throws(Errno) {
    try descriptor(of: handle).use { (fd) throws(Errno) in
      try fd.synchronize(dataOnly: dataOnly)
    }
  }

  /// For how long the kernel may cache a name that it gets with a listing.
  ///
  /// Linux (6.18) takes such names for newer than all that was withdrawn before they have arrived, so a
  /// listing that is on its way could bring back what has gone. Where another view may change the directory
  /// they are not given; and where one might by the time that the listing arrives, not for long.
  private func listedValidity(in directory: borrowing NodeTable.Reference, _ place: Object) -> Double {
    let validity = nameValidity(in: directory, place)
    return volume.views.areSeveral ? min(validity, 30) : validity
  }

  /// Whether a name that was found in a directory does not exist in the view.
  private func isUnseen(_ found: DirectoryEntries.Entry, in parent: borrowing NodeTable.Reference) -> Bool {
    let object =
      scope.hasSiblings
      ? SiblingObject(ObjectNumber(inode: found.inode, device: parent.number.device)) : nil
    if scope.position(of: found.name, in: parent.position, object: object) == .nowhere { return true }
    guard isForBackup else { return false }
    return found.type == UInt8(DT_FIFO)
      || isLeftOut(found.name, zone(of: found.name, in: parent), in: parent.fd)
  }

  /// Adds one entry.
  ///
  /// One that vanishes, or can't be looked at, is listed without attributes: it must not spoil the others. So
  /// are all without `validity`.
  private func add(
    _ found: DirectoryEntries.Entry, _ next: Int64, in parent: borrowing NodeTable.Reference,
    _ parentStatus: FileStatus,
    _ validity: Double?, to writer: inout DirectoryWriter, by caller: Caller
  ) {
    var inode = found.inode
    var entry: Entry?
    if !found.name.isComponent {
      // Above the root of the tree is the store, which is nobody's business.
      if parent.id == .root { inode = UInt64(parentStatus.st_ino) }
    } else if isUnseen(found, in: parent) {
      return
    } else if let held, (try? hold(found.name, of: parent, held, by: caller.uid)) ?? true {
      // It may be long until it is looked up: until then a file that is saved may take its place.
    } else if let validity,
      !nodes.isKnown(ObjectNumber(inode: inode, device: parent.number.device), in: parent.id)
    {
      // What the kernel knows already it need not be told again, and a tree that was just made is known as a
      // whole.
      entry = try? self.entry(found.name, in: parent, validity, by: caller)
    }
    let shown = volume.shown(ObjectNumber(inode: inode, device: parent.number.device))
    // The store has a link in the place of a home that is elsewhere.
    let isHome =
      parent.zone == .users && volume.attached.find(found.name.buffer, in: parent.number) != nil
    let type = isHome ? UInt8(DT_DIR) : found.type
    writer.add(found.name, inode: shown, type: type, next: next, entry: entry)
  }
}

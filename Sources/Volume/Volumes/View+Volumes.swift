// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

// The directory in which volumes are.

extension View {
  /// Whether a name in a directory is that of a volume, be it only because nothing else is there.
  func isVolume(_ name: Name, in directory: borrowing NodeTable.Reference) -> Bool {
    isVolume(name, in: directory.number, directory.zone)
  }

  func isVolume(_ name: Name, in directory: ObjectNumber, _ zone: Zone) -> Bool {
    if zone.holdsVolumes { return true }
    guard zone.mayHoldVolumes else { return false }
    let attached = volume.attached
    return attached.find(name.buffer, in: directory, ignoringCase: volume.settings.ignoresCase) != nil
      || attached.awaited(name.buffer, in: directory) != nil
  }

  /// The volume that a name stands for; ENOENT if there is none for the caller.
  func volume(
    named name: Name, in place: ObjectNumber, for caller: Caller
  ) throws(Errno) -> AttachedVolume {
    let attached = volume.attached
    let ignoresCase = volume.settings.ignoresCase
    func find() -> AttachedVolume? {
      attached.find(name.buffer, in: place, for: caller.uid, ignoringCase: ignoresCase)
    }
    if let found = find() { return found }
    if attached.arePlacedAlone(in: place),
      let locked = attached.locked.find(name.buffer, for: caller.uid, ignoringCase: ignoresCase)
    {
      guard let place = locked.place else { throw .ENOKEY }
      return place
    }
    if let awaited = attached.awaited(name.buffer, in: place, for: caller.uid) {
      attached.mount(awaited, for: caller.uid)
      if let found = find() { return found }
    }
    // A home that is known is away.
    if place == attached.users { throw .ENOMEDIUM }
    // With ENOENT the kernel would forget the name of whoever has it, and where their processes are. This is
    // the one error at which it keeps that.
    if let others = attached.find(name.buffer, in: place, ignoringCase: ignoresCase),
      nodes.isKnown(others.number)
    {
      throw .ENOMEM
    }
    throw .ENOENT
  }

  /// What the name of a volume stands for.
  ///
  /// The kernel asks again each time where it is not there for all.
  func entryOfVolume(
    _ name: Name, in directory: borrowing NodeTable.Reference, by caller: Caller
  ) throws(Errno) -> Entry {
    try refuseUnseen(name, in: directory.position)
    let found = try volume(named: name, in: directory.number, for: caller)
    let root = try nodes.openWithRoom { () throws(Errno) in try found.open() }
    let isForAll = found.record.owner == nil || audience.isPrivate
    return try entry(
      root, name, in: directory, isForAll ? AttachedVolumes.cacheSeconds : 0, of: found, by: caller)
  }

  /// The same for a change of names, which the gate then refuses.
  func findVolume(
    _ name: Name, in directory: DirectoryChange.Directory, by caller: Caller
  ) throws(Errno) -> NamedObject {
    // A home is taken away as a volume is.
    if directory.zone == .users { throw .EBUSY }
    let found = try volume(named: name, in: directory.number, for: caller)
    let root = try found.open()
    let status = try root.fd.status()
    let reach = scope.reach(of: scope.position(of: name, in: directory.position))
    return NamedObject(
      status: status, object: object(status, zone: found.zone, reach: reach, security: .none))
  }

  /// Throws if something in /Users stands for a home that is on no disk that is there.
  func refuseAwayHome(_ object: FD, _ status: FileStatus) throws(Errno) {
    if status.isSymlink, HomeLink.isOne(object) { throw .ENOMEDIUM }
  }

  /// The same for a change of its name: it is taken away as a volume is.
  func refuseAwayHome(_ name: Name, in users: FD) throws(Errno) {
    let object = try users.child(name)
    if HomeLink.isOne(object.fd) { throw .EBUSY }
  }

  /// Lists those that are there for the caller.
  func listVolumes(
    in directory: borrowing NodeTable.Reference, after offset: Int64, into writer: inout DirectoryWriter,
    by caller: Caller
  ) throws(Errno) {
    let (own, place, position) = (directory.number.inode, directory.number, directory.position)
    func isSeen(_ name: [UInt8]) -> Bool {
      name.withUnsafeBufferPointer { scope.position(of: $0, in: position) } != .nowhere
    }
    let volumes = volume.attached.all.filter { found in
      found.place == place && found.isVisible(to: caller.uid) && isSeen(found.record.name)
    }
    var entries = [(name: Array(".".utf8), inode: own, next: Int64(1))]
    entries.append((Array("..".utf8), own, 2))
    if directory.zone == .volumes {
      // The order is that of their numbers, which are their offsets: what comes and goes meanwhile moves no
      // other.
      entries += volumes.map { ($0.record.name, volume.shown($0.number), $0.record.id &+ 2) }
    } else {
      // What is announced has no number before it is there, so the order is that of a hash of the names.
      var names = volumes.map(\.record.name)
      for name in volume.attached.announced(in: place) where isSeen(name) && !names.contains(name) {
        names.append(name)
      }
      entries += names.map { name in
        let offset = Self.offset(of: name)
        let found = volumes.first { $0.record.name == name }
        return (name, found.map { volume.shown($0.number) } ?? UInt64(bitPattern: offset), offset)
      }
      .inOrder { $0.next < $1.next }
    }
    for entry in entries where entry.next > offset {
      guard try writer.addDirectory(entry.name, inode: entry.inode, next: entry.next) else { return }
    }
  }
}

extension View {
  /// FNV-1a, above the offsets of what each directory has.
  private static func offset(of name: [UInt8]) -> Int64 {
    let hash = name.reduce(UInt64(0xcbf2_9ce4_8422_2325)) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    return Int64(hash >> 1) | 4
  }
}

extension Volume {
  /// The number that the kernel is told of an object: on another device than the tree's one of its own, since
  /// the whole tree has one device for programs.
  func shown(_ number: ObjectNumber) -> UInt64 {
    number.device == device ? number.inode : number.shownBesideOthers
  }

  /// What the kernel is told of an object.
  ///
  /// A program on a volume runs with nobody else's rights: anyone can bring a disk. The mount of the tree
  /// does not forbid set-user-ID, since the system domain may have some.
  func shown(
    _ status: FileStatus, in zone: Zone, isOnVolume: Bool, to caller: Caller
  ) -> FileStatus {
    var status = status
    if zone.hasNoOwners {
      let owner = owner(of: ObjectNumber(status), for: caller)
      (status.st_uid, status.st_gid) = owner
    }
    let hasSetID = isOnVolume && status.isRegular && status.st_mode & Self.setID != 0
    guard hasSetID || UInt32(truncatingIfNeeded: status.st_dev) != device else { return status }
    status.st_ino = ino_t(shown(ObjectNumber(status)))
    if hasSetID { status.st_mode &= ~Self.setID }
    return status
  }

  /// Whose an object without an owner is: that of the user whose volume it is, or of whoever asks.
  private func owner(of number: ObjectNumber, for caller: Caller) -> (uid: UInt32, gid: UInt32) {
    guard let user = attached.volume(onDevice: number.device)?.record.owner, user != caller.uid else {
      return (caller.uid, caller.gid)
    }
    return (user, user)
  }

  /// The same of what `statx(2)` has given.
  func show(
    inStatx bytes: UnsafeMutableRawPointer, _ number: ObjectNumber, in zone: Zone, isOnVolume: Bool,
    to caller: Caller
  ) {
    let (uidOffset, gidOffset, modeOffset, inodeOffset) = (20, 24, 28, 32)
    if zone.hasNoOwners {
      let owner = owner(of: number, for: caller)
      bytes.storeBytes(of: owner.uid, toByteOffset: uidOffset, as: UInt32.self)
      bytes.storeBytes(of: owner.gid, toByteOffset: gidOffset, as: UInt32.self)
    }
    bytes.storeBytes(of: shown(number), toByteOffset: inodeOffset, as: UInt64.self)
    let mode = UInt32(bytes.load(fromByteOffset: modeOffset, as: UInt16.self))
    guard isOnVolume, mode & 0o170000 == 0o100000 else { return }
    bytes.storeBytes(
      of: UInt16(truncatingIfNeeded: mode & ~UInt32(Self.setID)), toByteOffset: modeOffset, as: UInt16.self)
  }

  private static var setID: FileMode { 0o6000 }
}

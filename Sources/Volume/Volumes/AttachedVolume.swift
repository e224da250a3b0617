// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
package import LinuxIO
internal import Policy
package import Store
internal import Synchronization

/// One of the volumes of `AttachedVolumes`.
package final class AttachedVolume: Sendable {
  package let record: VolumeRecord
  package let engine: VolumeEngine
  /// What it is besides, if it is a home.
  package let home: RedirectedNames.Target?
  /// Locks of its own where those of others must not wait for it.
  let names: NameLocks?
  let appends: NameLocks?
  private let changes = Atomic<Int64>(0)
  /// Its root, which can be looked into; in root's store on a mount of its own.
  private let root: SharedFD
  let number: ObjectNumber
  /// Tells it from all others there have been: the next one may have its device, and the same record.
  let serial: UInt64
  private static let serials = Atomic<UInt64>(0)
  private let mount: UInt64?
  /// The directory in which it has its name; nil if that is missing, and then nobody finds it.
  let place: ObjectNumber?
  /// The numbers of the directory and of all that it lay in when it was attached.
  let numbersUpwards: Set<ObjectNumber>

  /// `root` is what it is served by; `directory` what becomes a volume, if that is one of the machine's; in
  /// `tree` it gets its name.
  package init(
    _ record: VolumeRecord, _ engine: VolumeEngine, of directory: SharedFD?, root: SharedFD,
    home: RedirectedNames.Target? = nil, in tree: FD
  ) throws(Errno) {
    // Of what is mounted or opened for it, a home is a part.
    let (directory, root) = home.map { ($0.root, $0.root) } ?? (directory, root)
    self.home = home
    place = AttachedVolumes.number(of: record.place, in: tree)
    serial = Self.serials.wrappingAdd(1, ordering: .relaxed).newValue
    self.record = record
    self.engine = engine
    self.root = root
    // A disk of the kernel's may not answer either, and has no queue.
    let isOwn = engine.queue != nil || record.kind == .disk
    names = isOwn ? NameLocks() : nil
    appends = isOwn ? NameLocks() : nil
    (number, mount) = try root.use { (fd) throws(Errno) in
      (ObjectNumber(try fd.statusInMemory()), try? fd.mountNumber())
    }
    numbersUpwards =
      try directory.map { (directory) throws(Errno) in
        Set(try directory.use { (fd) throws(Errno) in fd.numbersUpwards })
      } ?? [number]
  }

  deinit { engine.queue?.stop() }

  /// The number of its filesystem.
  package var device: UInt32 { number.device }

  /// By which nodes know it; never 0.
  var nodeNumber: UInt32 { UInt32(truncatingIfNeeded: record.id) }

  var zone: Zone {
    if record.place == .users { return .home }
    if engine.keepsOwners { return engine.isReadOnly ? .readOnlyVolume : .volume }
    return engine.isReadOnly ? .readOnlyOwnerlessVolume : .ownerlessVolume
  }

  var isForAll: Bool { record.owner == nil }

  /// How often names on it were changed.
  var nameChanges: Int64 { changes.load(ordering: .acquiring) }

  /// Some may have been; it is told before the answer.
  func namesChanged() { changes.wrappingAdd(1, ordering: .releasing) }

  /// Whether it exists for a user.
  ///
  /// Root has none of users': what they call like a disk of root's would take what root's programs write
  /// there, and a program of theirs would answer root's. So the kernel keeps root out of users' FUSE mounts.
  package func isVisible(to user: UInt32) -> Bool { record.isVisible(to: user) }

  /// Its root, named but not opened.
  func open() throws(Errno) -> OwnedFD {
    try root.use { (fd) throws(Errno) in try fd.open(Name.here, O_DIRECTORY | pathOnly) }
  }

  /// Finds an object of its filesystem by its handle.
  func open(_ handle: FileHandle) throws(Errno) -> OwnedFD {
    try root.use { (fd) throws(Errno) in
      let real = try fd.open(Name.here, O_RDONLY | O_DIRECTORY)
      return try real.fd.open(handle)
    }
  }

  /// The names below its root by which the kernel knows an object; nil if it is not below it.
  func names(of path: [UInt8], onMount mount: UInt64?) -> [[UInt8]]? {
    guard mount == self.mount,
      let own = try? root.use({ (fd) throws(Errno) in try fd.ownPath() })
    else { return nil }
    let base = own == [UInt8(ascii: "/")] ? [] : own
    guard path.starts(with: base) else { return nil }
    let rest = path.dropFirst(base.count)
    return rest.isEmpty || rest.first == UInt8(ascii: "/") ? GrantPath.names(Array(rest)) : nil
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO
internal import Policy
package import Store
internal import Synchronization

// The volumes below /Volumes: directories outside the store that are served as a part of the tree.
//
//  1. In the directory /Volumes there are the names of this table and no others, whatever the store has
//     there. Nobody but the daemon changes them (`Zone.volumes`).
//  2. A name leads to the volume's own root, on a mount of the daemon's that nobody else sees. From there on
//     all goes as anywhere in the tree: nodes are known by device and number.
//  3. Others than the daemon change what is on a volume. So the kernel keeps what it was told of it for a
//     second, never that a name is missing, and never the pages or the listing of an earlier open; and ACLs
//     and flags are read for each decision.
//  4. A user's volume exists for that user and for root alone.
//  5. Nothing that is mounted in it is a part of it, and neither is the store, should it lie there.

/// One of them.
package final class AttachedVolume: Sendable {
  package let record: VolumeRecord
  /// Its root, which can be looked into; in root's store on a mount of its own.
  private let root: SharedFD
  let number: ObjectNumber
  private let mount: UInt64?
  /// The numbers of the directory and of all that it lay in when it was attached.
  let numbersUpwards: Set<ObjectNumber>

  /// `directory` is what becomes a volume, and `root` what it is served by: the same, or a mount of it.
  package init(_ record: VolumeRecord, of directory: SharedFD, root: SharedFD) throws(Errno) {
    self.record = record
    self.root = root
    numbersUpwards = Set(try directory.use { (fd) throws(Errno) in fd.numbersUpwards })
    (number, mount) = try root.use { (fd) throws(Errno) in
      (ObjectNumber(try fd.status()), try? fd.mountNumber())
    }
  }

  var zone: Zone { record.isReadOnly ? .readOnlyVolume : .volume }

  /// Whether it exists for a user.
  package func isVisible(to user: UInt32) -> Bool { record.owner == nil || record.owner == user || user == 0 }

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

/// See the rules above.
package final class AttachedVolumes: Sendable {
  /// The directory in which they are.
  static let directory = Array("Volumes".utf8)
  /// For how long the kernel may keep what it was told of something on one.
  static let cacheSeconds = 1.0

  private let state = Mutex<[AttachedVolume]>([])
  /// Those that are no part of the tree any more, and still in use.
  private let leaving = Mutex<[AttachedVolume]>([])
  private let count = Atomic<Int>(0)
  private let hasBeen = Atomic<Bool>(false)
  /// What may be on no volume: the directory in which the store is.
  private let store: ObjectNumber?
  /// The number of the directory in which they are.
  private let place: ObjectNumber?

  /// Whether a directory holds the store, or lies in it.
  package func overlapsStore(_ directory: FD, _ tree: FD) -> Bool {
    guard let own = (try? directory.status()).map({ ObjectNumber($0) }) else { return true }
    return directory.numbersUpwards.contains { $0 == store } || tree.numbersUpwards.contains(own)
  }

  init(tree: FD) {
    store = (try? tree.status(of: "..")).map { ObjectNumber($0) }
    place = (try? tree.status(of: Self.directory)).map { ObjectNumber($0) }
  }

  /// In the order in which they were added.
  package var all: [AttachedVolume] { count.load(ordering: .relaxed) == 0 ? [] : state.withLock { $0 } }

  /// Whether there has been none yet.
  var isEmpty: Bool { !hasBeen.load(ordering: .relaxed) }

  package func add(_ volume: AttachedVolume) {
    hasBeen.store(true, ordering: .relaxed)
    state.withLock { volumes in
      guard !volumes.contains(where: { $0.record.id == volume.record.id }) else { return }
      volumes.append(volume)
      volumes.sort { $0.record.id < $1.record.id }
      count.store(volumes.count, ordering: .relaxed)
    }
  }

  /// Takes one out of the tree; what is open on it stays usable until ``forget(unless:)``.
  func remove(_ id: Int64) {
    let removed = state.withLock { volumes in
      let removed = volumes.filter { $0.record.id == id }
      volumes.removeAll { $0.record.id == id }
      count.store(volumes.count, ordering: .relaxed)
      return removed
    }
    leaving.withLock { $0 += removed }
  }

  /// Forgets those that were removed and are not used any more; their disks are free then.
  package func forget(unless isUsed: (AttachedVolume) -> Bool) {
    let left = leaving.withLock { $0 }
    let unused = Set(left.filter { !isUsed($0) }.map(\.record.id))
    leaving.withLock { leaving in leaving.removeAll { unused.contains($0.record.id) } }
  }

  // MARK: By name

  /// The one of that name, if it exists for a user; names that differ by case are never two volumes'.
  package func find(
    _ name: some Collection<UInt8>, for user: UInt32 = 0, ignoringCase: Bool = false
  ) -> AttachedVolume? {
    all.first { volume in
      guard volume.isVisible(to: user) else { return false }
      return volume.record.name.elementsEqual(name)
        || ignoringCase && areOneName(volume.record.name, Array(name))
    }
  }

  /// Whether a directory is the one in which they are.
  func arePlaced(in directory: ObjectNumber) -> Bool {
    directory == place && count.load(ordering: .relaxed) > 0
  }

  /// The one in which something lies, or that lies in it, if there is one.
  package func overlapping(_ directory: FD) -> AttachedVolume? {
    let numbers = Set(directory.numbersUpwards)
    guard let own = (try? directory.status()).map({ ObjectNumber($0) }) else { return nil }
    return all.first { volume in
      numbers.contains(volume.number) || volume.numbersUpwards.contains(own)
    }
  }

  // MARK: By what is on them

  /// Finds an object by its handle on one of the volumes that lie on its device.
  func open(_ handle: FileHandle, onDevice device: UInt32) throws(Errno) -> OwnedFD {
    let here = all.first { $0.number.device == device }
    let volume = here ?? leaving.withLock { $0.first { $0.number.device == device } }
    guard let volume else { throw .ESTALE }
    return try volume.open(handle)
  }

  /// Where an object is that the kernel knows by a path; nil if that is on no volume.
  func names(of object: FD, at path: [UInt8]) -> [[UInt8]]? {
    let volumes = all
    guard !volumes.isEmpty else { return nil }
    let mount = try? object.mountNumber()
    // One may lie in another.
    return volumes.compactMap { volume in
      volume.names(of: path, onMount: mount).map { [Self.directory, volume.record.name] + $0 }
    }
    .min { $0.count < $1.count }
  }

  /// Throws for what was found in a directory of a volume and is no part of it.
  func check(_ status: FileStatus, in directory: ObjectNumber) throws(Errno) {
    let number = ObjectNumber(status)
    if number == store { throw .ENOENT }
    if number.device != directory.device { throw .EXDEV }
  }
}

extension FD {
  /// The number of a directory and of all that it lies in, as far as that can be found out.
  var numbersUpwards: [ObjectNumber] {
    var numbers: [ObjectNumber] = []
    guard var here = try? open(Name.here, O_DIRECTORY | pathOnly) else { return [] }
    while let status = try? here.fd.status(), numbers.last != ObjectNumber(status), numbers.count < 4096 {
      numbers.append(ObjectNumber(status))
      guard let parent = try? here.fd.openParent() else { break }
      here = parent
    }
    return numbers
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
package import LinuxIO
internal import Policy
package import Store
internal import Synchronization

// The volumes below /Volumes and /Network: directories, disks and servers that are served as a part of the
// tree.
//
//  1. In the directory /Volumes, and in those of computers in /Network/Servers, there are the names of this
//     table and no others, whatever the store has there. Nobody but the daemon changes them
//     (`Zone.holdsVolumes`). In /Network a volume hides what the store has under its name.
//  2. A name leads to the volume's own root, on a mount of the daemon's that nobody else sees. From there on
//     all goes as anywhere in the tree: nodes are known by device and number.
//  3. Others than the daemon change what is on a volume. So the kernel keeps what it was told of it for a
//     second, never that a name is missing, and the pages of an earlier open only of what has not been
//     changed (`KeptContents`); and ACLs and flags are read for each decision. Nobody else changes a disk
//     that a program serves for the daemon alone (`VolumeEngine.isAlone`). There the kernel also keeps
//     listings, and for a second that a name is missing where each spelling is a name of its own, and who may
//     do what is told from its memory.
//  4. A user's volume exists for that user alone, and not for root.
//  5. Nothing that is mounted in it is a part of it, and neither is the store, should it lie there.
//  6. One that somebody else's program or a server answers for may not answer: requests about it have a queue
//     of their own, and no lock that others need is held meanwhile. What is asked of it outside of requests
//     is asked of the kernel's memory.

/// See the rules above.
package final class AttachedVolumes: Sendable {
  /// For how long the kernel may keep what it was told of something on one.
  static let cacheSeconds = 1.0

  private let state = Mutex<[AttachedVolume]>([])
  /// Those that are no part of the tree any more, and still in use.
  private let leaving = Mutex<[AttachedVolume]>([])
  private let count = Atomic<Int>(0)
  /// Whether any has had a queue of its own.
  private let haveQueues = Atomic<Bool>(false)
  private let someHaveLocks = Atomic<Bool>(false)
  private let hasBeen = Atomic<Bool>(false)
  /// Homes that are elsewhere, and what is in `/Network`, whether or not it is there now; their names are
  /// folded.
  private let disks = Mutex<Set<[[UInt8]]>>([])
  /// Mounts what is not there yet; nil before anyone can.
  private let mounter = Mutex<(@Sendable (AwaitedVolume, _ user: UInt32) -> Void)?>(nil)
  private let awaited = Mutex<[AwaitedVolume]>([])
  private let awaits = Atomic<Bool>(false)
  /// Whoever wants to know that somebody looks at the computers of the network.
  private let onlooker = Mutex<(@Sendable () -> Void)?>(nil)
  /// The encrypted ones.
  package let locked = LockedVolumes()
  /// For those who look for such a name.
  let lookups: RequestQueue
  /// What may be on no volume: the directory in which the store is.
  private let store: ObjectNumber?
  /// `/Volumes`.
  private let directory: ObjectNumber?
  /// `/Users`.
  let users: ObjectNumber?

  /// Whether a directory holds the store, or lies in it.
  package func overlapsStore(_ added: AttachedVolume, _ tree: FD) -> Bool {
    store.map { added.numbersUpwards.contains($0) } ?? true || tree.numbersUpwards.contains(added.number)
  }

  init(tree: FD, _ budget: Budget) {
    lookups = RequestQueue(budget: budget, isForOne: false)
    store = (try? tree.status(of: "..")).map { ObjectNumber($0) }
    directory = Self.number(of: .volumes, in: tree)
    users = Self.number(of: .users, in: tree)
  }

  static func number(of place: VolumeRecord.Place, in tree: FD) -> ObjectNumber? {
    (try? tree.status(at: place.path)).map { ObjectNumber($0) }
  }

  /// In the order in which they were added.
  package var all: [AttachedVolume] { count.load(ordering: .relaxed) == 0 ? [] : state.withLock { $0 } }

  /// Whether requests about some may have to wait.
  var hasQueues: Bool { haveQueues.load(ordering: .relaxed) }

  /// Whether some have locks of their own on names.
  var haveLocks: Bool { someHaveLocks.load(ordering: .relaxed) }

  /// Whether there has been none yet.
  var isEmpty: Bool { !hasBeen.load(ordering: .relaxed) }

  package func add(_ volume: AttachedVolume) {
    hasBeen.store(true, ordering: .relaxed)
    if volume.engine.queue != nil { haveQueues.store(true, ordering: .relaxed) }
    if volume.names != nil { someHaveLocks.store(true, ordering: .relaxed) }
    state.withLock { volumes in
      guard !volumes.contains(where: { $0.record.id == volume.record.id }) else { return }
      let next = volumes.firstIndex { $0.record.id > volume.record.id }
      volumes.insert(volume, at: next ?? volumes.endIndex)
      count.store(volumes.count, ordering: .relaxed)
    }
    locked.set(volume.record.id, isUnlocked: true)
    if volume.record.kind == .directory, !volume.record.isEncrypted { locked.forgetFormer() }
  }

  /// Knows an encrypted volume, whose directory is there.
  package func hold(_ record: VolumeRecord, at place: AttachedVolume?) {
    hasBeen.store(true, ordering: .relaxed)
    if place != nil { haveQueues.store(true, ordering: .relaxed) }
    locked.add(record, at: place, isUnlocked: attached(record.id) != nil)
  }

  /// Whether names below a path, whose own are folded, are compared as a disk does.
  func isDisk(_ path: [[UInt8]]) -> Bool {
    switch path.count {
    case 2: path[0] == Self.folded("Volumes") || disks.withLock { $0.contains(path) }
    case 4: path[0] == Self.folded("Network") && path[1] == Self.folded("Servers")
    default: false
    }
  }

  private static func folded(_ name: StaticString) -> [UInt8] {
    name.withUTF8Buffer { TreeNames.folded(Array($0)) }
  }

  /// Knows what a record leads to as a disk; false if that is known already, or is known of all in its place.
  func noteDisk(_ record: VolumeRecord) -> Bool {
    guard record.place == .users || record.place == .network else { return false }
    return disks.withLock { $0.insert(record.treePath.map(TreeNames.folded)).inserted }
  }

  /// Another directory may have the name of what a record led to.
  func forgetDisk(_ record: VolumeRecord) {
    disks.withLock { _ = $0.remove(record.treePath.map(TreeNames.folded)) }
  }

  /// Those that are known, by their paths.
  var knownDisks: [[[UInt8]]] { disks.withLock { Array($0) } }

  /// The one that has a number in the registry.
  package func attached(_ id: Int64) -> AttachedVolume? { all.first { $0.record.id == id } }

  /// Takes one out of the tree; what is open on it stays usable until ``letGo(usersOf:)``.
  func remove(_ id: Int64) {
    state.withLock { volumes in
      // First: what is on it is known by it at any time.
      leaving.withLock { leaving in leaving += volumes.filter { $0.record.id == id } }
      volumes.removeAll { $0.record.id == id }
      count.store(volumes.count, ordering: .relaxed)
    }
    locked.set(id, isUnlocked: false)
  }

  /// Forgets those that were removed and are not used any more, and gives them; whether some are left.
  func letGo(
    usersOf users: ([AttachedVolume]) -> [[String]]
  ) -> (gone: [AttachedVolume], areLeft: Bool) {
    let left = leaving.withLock { $0 }
    let unused = zip(left, users(left)).filter { $1.isEmpty }.map(\.0)
    return leaving.withLock { leaving in
      leaving.removeAll { volume in unused.contains { $0 === volume } }
      return (unused, !leaving.isEmpty)
    }
  }

  /// How many of an owner's are no part of the tree any more, and still in use.
  package func left(where isMeant: (_ owner: UInt32?) -> Bool) -> Int {
    leaving.withLock { $0.count { isMeant($0.record.owner) } }
  }

  // MARK: Those that are not there

  /// Which are known and not there; `mount` is called when somebody looks for one of them.
  package func awaitLookups(
    of volumes: [AwaitedVolume], _ mount: @escaping @Sendable (AwaitedVolume, _ user: UInt32) -> Void
  ) {
    mounter.withLock { $0 = mount }
    awaited.withLock { $0 = volumes }
    awaits.store(!volumes.isEmpty, ordering: .relaxed)
    if !volumes.isEmpty { haveQueues.store(true, ordering: .relaxed) }
  }

  /// The one of that name that could be mounted for a user, or for anyone.
  func awaited(
    _ name: some Collection<UInt8>, in place: ObjectNumber, for user: UInt32? = nil
  ) -> AwaitedVolume? {
    guard awaits.load(ordering: .relaxed) else { return nil }
    return awaited.withLock { awaited in
      awaited.first { volume in
        volume.place == place && volume.record.name.elementsEqual(name)
          && (user.map(volume.isVisible) ?? true)
      }
    }
  }

  /// The names of those that users are shown before they are there.
  func announced(in place: ObjectNumber) -> [[UInt8]] {
    awaited.withLock { awaited in awaited.filter { $0.place == place && $0.isAnnounced }.map(\.record.name) }
  }

  /// Has it mounted, if it can be, which takes a while.
  func mount(_ volume: AwaitedVolume, for user: UInt32) { mounter.withLock { $0 }?(volume, user) }

  /// Has `tell` called when somebody looks at the computers of the network.
  package func serversAreLookedAt(_ tell: @escaping @Sendable () -> Void) { onlooker.withLock { $0 = tell } }

  /// Somebody looks at them.
  func tellOfLook() { onlooker.withLock { $0 }?() }

  // MARK: By name

  /// The one of that name in a directory, if it exists for a user, their own rather than another's.
  ///
  /// Without a user it is that of anyone. Names that differ by case are never two volumes'.
  func find(
    _ name: some Collection<UInt8>, in place: ObjectNumber, for user: UInt32? = nil,
    ignoringCase: Bool = false
  ) -> AttachedVolume? {
    var found: AttachedVolume?
    for volume in all where volume.place == place {
      if let user, !volume.isVisible(to: user) { continue }
      let isNamed =
        volume.record.name.elementsEqual(name)
        || ignoringCase && areOneName(volume.record.name, Array(name))
      guard isNamed else { continue }
      if volume.record.owner == user { return volume }
      found = found ?? volume
    }
    return found
  }

  /// Whether a directory is one in which some are.
  func arePlaced(in directory: ObjectNumber) -> Bool { all.contains { $0.place == directory } }

  /// Whether the names in a directory may lead elsewhere than the store says.
  func mayBeListed(in directory: ObjectNumber, _ zone: Zone) -> Bool {
    zone.mayHoldVolumes && (zone != .users || arePlaced(in: directory))
  }

  /// Whether nothing but volumes is in a directory, whatever the store has there.
  func arePlacedAlone(in directory: ObjectNumber) -> Bool { directory == self.directory }

  /// In which of them, or in the store, a directory lies.
  package func holding(_ directory: FD) -> (isStore: Bool, volume: AttachedVolume?) {
    let numbers = directory.numbersUpwards
    return (store.map { numbers.contains($0) } ?? true, all.first { numbers.contains($0.number) })
  }

  /// The one in which another one lies, or that lies in it, or is it, if there is one.
  package func overlapping(_ added: AttachedVolume) -> AttachedVolume? {
    (all + locked.places).first { volume in
      volume.record.id != added.record.id
        && (added.numbersUpwards.contains(volume.number) || volume.numbersUpwards.contains(added.number))
    }
  }

  // MARK: By what is on them

  /// One of the volumes that lie on a device, also if it is leaving.
  func volume(onDevice device: UInt32) -> AttachedVolume? {
    all.first { $0.number.device == device }
      ?? leaving.withLock { $0.first { $0.number.device == device } }
  }

  /// The one that a node knows, also if it is leaving.
  func volume(numbered number: UInt32) -> AttachedVolume? {
    guard number != 0 else { return nil }
    return all.first { $0.nodeNumber == number }
      ?? leaving.withLock { $0.first { $0.nodeNumber == number } }
  }

  /// Whether nodes of that number are on a volume that is no part of the tree any more.
  func hasLeft(numbered number: UInt32) -> Bool {
    number != 0 && !all.contains { $0.nodeNumber == number }
  }

  /// Whether an object is on a volume that is there for everyone.
  func isForAll(_ object: ObjectNumber) -> Bool { volume(onDevice: object.device)?.record.owner == nil }

  /// Whether an object can have an ACL or flags, as far as its filesystem decides that.
  func keepAttributes(on object: ObjectNumber) -> Bool {
    !hasQueues || volume(onDevice: object.device)?.engine.keepsAttributes ?? true
  }

  /// The same for attributes of users.
  func keepUserAttributes(on object: ObjectNumber) -> Bool {
    !hasQueues || volume(onDevice: object.device)?.engine.keepsUserAttributes ?? true
  }

  /// The queue for what lies on a device.
  func queue(ofDevice device: UInt32) -> RequestQueue? {
    hasQueues ? volume(onDevice: device)?.engine.queue : nil
  }

  /// Where an object is that the kernel knows by a path; nil if that is on no volume.
  func names(of object: FD, at path: [UInt8]) -> [[UInt8]]? {
    let volumes = all
    guard !volumes.isEmpty else { return nil }
    let mount = try? object.mountNumber()
    // One may lie in another.
    return volumes.compactMap { volume in
      volume.names(of: path, onMount: mount).map { volume.record.treePath + $0 }
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

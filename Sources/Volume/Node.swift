// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy

/// What is known of one object that the kernel knows.
///
/// A million of these are normal, so every byte counts.
struct Node: SlabSlot {
  struct Flags: OptionSet {
    let rawValue: UInt16
    /// The kernel has been told attributes that it may keep.
    static let attributesCached = Flags(rawValue: 1 << 0)
    /// Someone may have this directory as their working directory.
    static let isEntered = Flags(rawValue: 1 << 1)
    /// Was open for writing; a memory map may still be changing it.
    static let mayBeMapped = Flags(rawValue: 1 << 2)
    /// Used since the hand of the descriptor clock last passed.
    static let recent = Flags(rawValue: 1 << 3)
    /// Has no name that it could be found by again, so its descriptor must stay.
    static let descriptorIsLastHold = Flags(rawValue: 1 << 4)
    static let inUse = Flags(rawValue: 1 << 5)
    static let isDirectory = Flags(rawValue: 1 << 6)
    /// It is known whether the object has an ACL or flags; the next two are true.
    static let securityKnown = Flags(rawValue: 1 << 7)
    /// It has an ACL or flags, and they are in the volume's cache usually.
    static let hasSecurity = Flags(rawValue: 1 << 8)
    /// Its ACL may refuse someone its attributes, so they are never the kernel's to give out.
    static let hidesAttributes = Flags(rawValue: 1 << 9)

    /// Someone has asked for extended attributes of it.
    static let attributesAsked = Flags(rawValue: 1 << 10)
    /// Its descriptor does not only name the object: calls for attributes take it.
    static let descriptorIsReadable = Flags(rawValue: 1 << 11)
    /// Another view has changed what is in it since the kernel was last told to drop that: pages, or the
    /// listing.
    static let contentsChanged = Flags(rawValue: 1 << 12)
    /// Another view has changed it while an answer was on its way that the kernel may take in after it has
    /// been told.
    static let isDoubtful = Flags(rawValue: 1 << 13)

    /// Has the name of memory that databases share, and its pages may be one view's own: granted, or without
    /// passthrough.
    static let isSharedMemory = Flags(rawValue: 1 << 14)

    /// A directory in it has `isEntered`, or had when this was last looked at.
    static let holdsEntered = Flags(rawValue: 1 << 15)

    static let security: Flags = [.securityKnown, .hasSecurity, .hidesAttributes]
  }

  /// What the kernel has been told and has not released.
  var lookups: UInt64 = 0
  var inode: UInt64 = 0
  var handle = FileHandle()
  /// A name that it has in `parent`, in ``NodeNames``; only kept where there are no handles to open it by.
  var name: UInt32 = 0
  var generation: UInt32 = 0
  var device: UInt32 = 0
  /// The volume that it lies on; 0 for the tree itself.
  var volume: UInt32 = 0
  /// An `O_PATH` descriptor, or one for reading (`descriptorIsReadable`), or -1.
  var descriptor: Int32 = -1
  /// Requests that use the descriptor now.
  var references: UInt32 = 0
  /// The directory through which it was last found.
  var parent: UInt32 = 0
  /// The next node in the same hash bucket, or in the list of free slots.
  var next: UInt32 = 0
  /// Where it stands in the clock, if it has a descriptor.
  var clock: UInt32 = 0
  /// How many opens there are from which a map for writing could be made.
  var mappers: UInt32 = 0
  /// How many opens there are that can write, those included.
  var writers: UInt32 = 0
  /// When the kernel was last told attributes by an answer that may make it a new inode, in seconds; 0 once
  /// it has shown that it has that inode.
  var entrySentAt: UInt32 = 0
  private var ownZone: Zone = .system
  /// Where it is in the view's scope.
  var position: Position = .nowhere { didSet { updateCheck() } }
  var flags: Flags = []
  /// In which of the kernel's epochs it was last told names in this directory that it may keep; 0 if in none.
  var namesEpoch: UInt16 = 0
  /// Of what decides which object it is and who may do what with it.
  private var check: UInt32 = 0

  var zone: Zone {
    get { ownZone }
    set {
      ownZone = newValue
      updateCheck()
    }
  }

  /// Whether others than the daemon may change it at any time.
  var isOnVolume: Bool { volume != 0 }

  var hash: Int { Identity.hash(inode: inode, device: device) }
  var number: ObjectNumber { ObjectNumber(inode: inode, device: device) }
  var identity: Identity { Identity(inode: inode, device: device, handle: handle) }

  /// Notes where it is in the view's scope now; a directory may list other names there.
  mutating func setPosition(_ new: Position) {
    guard position != new else { return }
    position = new
    listsOtherNames()
  }

  /// The kernel reads a directory's listing again when it is next opened, whatever its times say.
  mutating func listsOtherNames() { if flags.contains(.isDirectory) { flags.insert(.contentsChanged) } }

  /// Whether this is the object that these describe.
  func matches(_ identity: Identity) -> Bool { identity.isSame(as: self.identity) }
}

// What another worker has left of a node.
extension Node {
  var isInUse: Bool { flags.contains(.inUse) }
  mutating func becomeFree() { flags = [] }

  mutating func updateCheck() { check = sum }

  /// Whether what lies there is a node that the kernel knows, and nothing has damaged what must be right.
  ///
  /// A byte that is no zone must not be taken for one.
  static func isSound(_ slot: UnsafeRawPointer) -> Bool {
    guard let offset = MemoryLayout<Node>.offset(of: \.ownZone),
      Zone(rawValue: slot.load(fromByteOffset: offset, as: UInt8.self)) != nil
    else { return false }
    let node = slot.assumingMemoryBound(to: Node.self)
    return node.pointee.check == node.pointee.sum && node.pointee.lookups > 0
  }

  private var sum: UInt32 {
    var sum: UInt64 = 0x9e37_79b9_7f4a_7c15
    func add(_ word: UInt64) {
      sum = (sum ^ word) &* 0xc2b2_ae3d_27d4_eb4f
      sum ^= sum >> 29
    }
    add(inode)
    add(handle.bytes[0])
    add(handle.bytes[1])
    add(handle.bytes[2])
    add(UInt64(device) << 32 | UInt64(generation))
    let isDirectory: UInt64 = flags.contains(.isDirectory) ? 1 : 0
    add(
      UInt64(handle.type) << 48 | UInt64(handle.length) << 40 | UInt64(zone.rawValue) << 24
        | UInt64(position.raw) << 8 | isDirectory)
    return UInt32(truncatingIfNeeded: sum >> 32)
  }

  /// Forgets what a new worker can't know: who used the node, and what was found out of its ACL.
  ///
  /// What the kernel may remember, it is taken to remember.
  mutating func forgetWorker() {
    references = 0
    mappers = 0
    writers = 0
    clock = 0
    entrySentAt = 0
    flags.subtract([.securityKnown, .hasSecurity, .hidesAttributes, .attributesAsked, .descriptorIsReadable])
    flags.formUnion([.attributesCached, .contentsChanged])
    // The first epoch of a worker.
    namesEpoch = flags.contains(.isDirectory) ? 1 : 0
  }
}

/// What tells an object from every other, also from a later one that is given the same number.
struct Identity {
  let inode: UInt64
  let device: UInt32
  let handle: FileHandle

  init(inode: UInt64, device: UInt32, handle: FileHandle) {
    self.inode = inode
    self.device = device
    self.handle = handle
  }

  /// Asks the backing filesystem.
  ///
  /// Where that has no handles, the time of creation tells two objects apart that were given the same number.
  init(_ status: FileStatus, of object: FD) {
    inode = UInt64(status.st_ino)
    device = UInt32(truncatingIfNeeded: status.st_dev)
    handle = object.handle() ?? FileHandle(createdAt: try? object.creationTime())
  }

  func isSame(as other: Identity) -> Bool {
    inode == other.inode && device == other.device && handle == other.handle
  }

  var hash: Int { Self.hash(inode: inode, device: device) }

  static func hash(inode: UInt64, device: UInt32) -> Int {
    var value = inode &* 0x9e37_79b9_7f4a_7c15
    value ^= UInt64(device) &* 0xc2b2_ae3d_27d4_eb4f
    return Int(truncatingIfNeeded: value >> 20 & 0x7fff_ffff_ffff)
  }
}

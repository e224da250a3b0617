// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Fuse
internal import Glibc
package import LinuxIO
internal import Store

/// How a volume behaves; the same for all its views.
package struct VolumeSettings: Sendable {
  /// Whether the daemon is root and makes objects for others.
  package var isSystem = true
  /// A new object's group is its maker's, as on Linux, and not its directory's (mount option `nogrpid`).
  package var callerGroup = false
  /// Whether objects may be opened by file handles.
  package var fileHandles = true
  /// Whether somebody else judges what is done to the store: see ``FilesystemKind/isRemote``.
  package var isRemote = false
  /// For how long the kernel may keep what it was told.
  ///
  /// Nothing but the daemon changes the store, so this could be for ever; a day bounds the harm when someone
  /// reaches behind it.
  package var cacheSeconds: Double = 86_400
  /// For how long names in a directory are not kept once all names had to be withdrawn for its sake
  /// (`RestlessDirectories`).
  package var restSeconds: UInt32 = 60
  /// The kernel keeps POSIX and flock locks to itself: faster closes, but other views do not see them.
  package var localLocks = false
  /// Whose access times the daemon's own descriptors leave alone: mount options `noatime` and `nodiratime`
  /// without root.
  package var sparesFileTimes = false
  package var sparesDirectoryTimes = false
  /// For how long flags that came as an attribute do not hold for who brought them: see
  /// ``ArrivingFlagsTable``.
  package var flagsArrivingSeconds: Double = 10
  /// How many nodes, of all views together, may have a descriptor.
  package var descriptors = 8192

  package init() {}
}

/// What all views of one store share.
package final class Volume: Sendable {
  package let settings: VolumeSettings
  /// The root of the tree, opened for reading: file handles are opened by it.
  let tree: FD
  /// What each user and each app's view has of what all share.
  package let budget: Budget
  let locks: LockTable
  /// Directories that are being read.
  let listings = ListingDescriptors()
  /// Whether those may be closed between two pages; on another filesystem than the tree's they may not.
  let listingsLast: (device: UInt64, Bool)
  /// How lists and flags are kept with their objects, and those that have been read.
  let metadata: Metadata
  let securities = SecurityCache()
  let arrivingFlags: ArrivingFlagsTable
  let names = NameLocks()
  /// What the tables of all views may keep open for speed.
  let descriptors: DescriptorShare
  /// What users have granted their apps.
  let grants: Grants
  /// What apps have beside files that they were granted.
  let siblings = SiblingIndex()
  /// What is sealed, and what reads large files for that.
  package let sealedPlaces: SealedPlaces
  let reading: SealReading
  /// What takes long, in turns by user; also for those who serve requests.
  package let slow: SlowWork
  /// The root of the tree on a mount of our own that leaves access times alone, for what is sealed; nil where
  /// there is none.
  let quietTree: FD?
  /// Where objects are made that have a list from the start; nil where there is no such place.
  let staging: Staging?
  /// What sees it, and which of those know what.
  let views = Views()
  let known = KnownObjects()
  let mounts = MountsInTree()
  let presence = Presence()

  /// `tree`, the directory `staging` for what is not finished, and `quietTree` outlive the volume.
  ///
  /// Nobody else puts anything into `staging`, and it is reached through the same mount of the same
  /// filesystem as the tree. `say` gets a line for each thing that is found to be other than it was sealed.
  package init(
    tree: FD, staging: FD? = nil, quietTree: FD? = nil, settings: VolumeSettings,
    budget: Budget = Budget(Budget.Limits(descriptors: 1 << 14)),
    slow: SlowWork? = nil,
    say: @escaping @Sendable (String) -> Void = { _ in }
  ) {
    self.tree = tree
    self.budget = budget
    locks = LockTable(budget)
    grants = Grants(budget)
    let slow = slow ?? SlowWork(servers: PoolSettings().servers, budget: budget)
    self.slow = slow
    reading = SealReading(slow)
    let device = UInt64((try? tree.status().st_dev) ?? 0)
    listingsLast = (device, ListingDescriptors.areLasting(on: try? tree.filesystemKind()))
    self.quietTree = quietTree
    sealedPlaces = SealedPlaces(say: say)
    self.settings = settings
    descriptors = DescriptorShare(settings.descriptors)
    arrivingFlags = ArrivingFlagsTable(seconds: settings.flagsArrivingSeconds)
    self.staging = staging.map { Staging($0) }
    metadata = Metadata(isSystem: settings.isSystem)
  }

  /// Calls `body` for every view whose kernel has begun to ask, without a lock.
  func forEachView(_ body: (View) -> Void) { for view in views.all { body(view) } }

  /// Calls `body` for each of those but one that may know an object, without a lock.
  func forEachView(knowing object: ObjectNumber, besides excepted: UInt32, _ body: (View) -> Void) {
    if let asked = views.asked(besides: excepted) { body(asked) }
    for number in known.views(of: object, besides: excepted) {
      if let view = views[number] { body(view) }
    }
  }

  /// Whether this machine, this user and this backing filesystem let objects be opened by handles.
  package static func canUseHandles(_ tree: FD) -> Bool {
    guard let handle = tree.handle(), (try? tree.open(handle)) != nil else { return false }
    return true
  }
}

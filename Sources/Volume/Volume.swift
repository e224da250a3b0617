// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
package import Fuse
internal import Glibc
package import LinuxIO
package import Policy
package import Store

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
  /// The users for whom the kernel reads and writes nothing by itself for a while.
  package var lockHolders: LockHolders?
  /// For how long the kernel may keep what it was told.
  ///
  /// Only the daemon changes the store, so this could be infinite. A day limits the harm if someone changes
  /// the backing files directly.
  package var cacheSeconds: Double = 86_400
  /// For how long names in a directory are not cached once all names had to be withdrawn for its sake
  /// (`NameCacheBackoff`).
  package var backoffSeconds: UInt32 = 60
  /// The kernel keeps POSIX and flock locks to itself: faster closes, but other views do not see them.
  package var localLocks = false
  /// What apps in their views can't give to others when they make something, unless it is granted.
  package var appUmask: UInt32 = 0
  /// Whether programs of sandboxed apps may be started outside of their views.
  package var allowsDirectStart = false
  /// Whether the extensions of documents are hidden from people where nothing else is said of them.
  package var hidesExtensions = true
  /// Whether names are compared without case and normalization, and how much memory may know of them.
  package var ignoresCase = false
  package var spellingBytes = min(64 << 20, max(MemoryLimit.ofThisProcess / 32, 4 << 20))
  /// The languages in which names are shown where nobody asks for another.
  package var languages = Languages.none
  /// Whether the daemon's own descriptors leave access times unchanged: mount options `noatime` and
  /// `nodiratime` without root.
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
  package let tree: FD
  /// What each user and each app's view has of what all share.
  package let budget: Budget
  let locks: LockTable
  /// Directories that are being read.
  let listings = ListingDescriptors()
  /// Whether those may be closed between two pages; on another filesystem than the tree's they may not.
  let listingsLast: Bool
  /// The device of the tree's filesystem.
  let device: UInt32
  /// How ACLs and flags are kept with their objects, and those that have been read.
  package let metadata: Metadata
  let securities = SecurityCache()
  let arrivingFlags: ArrivingFlagsTable
  private let names = NameLocks()
  /// How names are found in other spellings; nil where each is a name of its own.
  let spellings: SpellingIndex?
  let displayNames: DisplayNames
  /// What the tables of all views may keep open for speed.
  let descriptors: DescriptorShare
  /// What users have granted their apps.
  let grants: Grants
  /// What apps have beside files that they were granted.
  let siblings = SiblingIndex()
  /// What lies elsewhere and is served as a part of the tree.
  package let attached: AttachedVolumes
  /// What is sealed, and what reads large files for that.
  package let readOnlyRegions: ReadOnlyRegions
  /// Whose homes may get names with a dot.
  let macContainers = MacContainers()
  let reading: SealReading
  /// What takes long, in turns by user; also for those who serve requests.
  package let slow: SlowWork
  /// The root of the tree on a mount of our own that leaves access times alone, for what is sealed; nil where
  /// there is none.
  let noatimeTree: FD?
  /// Where objects are made that have an ACL from the start; nil where there is no such place.
  let staging: Staging?
  /// What sees it, and which of those know what.
  let views = Views()
  let interest = InterestIndex()
  let maps = MapOwners()
  let mounts = MountsInTree()
  let workingDirectories = WorkingDirectoryScanner()
  /// What the next worker finds; nil where there will be none.
  let kept: KeptState?
  let intents: Intents
  let served: ServedRequests
  /// How many steps of paths were made to take over views, by users.
  let stepsWalked = OrderedMutex(.leaf, [UInt32: Int]())
  /// Wants to know what is refused.
  let refusals: (any RefusalListener)?
  /// The types that a user's files may have, as far as the user or one of their apps may know them.
  let types: @Sendable (_ user: UInt32, _ app: AppIdentifier?) -> TypeTable
  /// Has people asked for their consent.
  let consentKeeper = OrderedMutex(.leaf, ConsentKeeperReference())
  /// The same locks on the ends of files: two appends to one file are made one after the other.
  private let appends = NameLocks()

  /// `tree`, the directory `staging` for what is not finished, and `noatimeTree` outlive the volume.
  ///
  /// Nobody else puts anything into `staging`, and it is reached through the same mount of the same
  /// filesystem as the tree. `say` gets a line for each thing that is found to be other than it was sealed.
  package init(
    tree: FD, staging: FD? = nil, noatimeTree: FD? = nil, settings: VolumeSettings,
    budget: Budget = Budget(Budget.Limits(descriptors: 1 << 14)),
    slow: SlowWork? = nil, kept: KeptState? = nil, refusals: (any RefusalListener)? = nil,
    types: @escaping @Sendable (_ user: UInt32, _ app: AppIdentifier?) -> TypeTable = { _, _ in .base },
    say: @escaping @Sendable (String) -> Void = { _ in }
  ) {
    self.tree = tree
    self.budget = budget
    self.kept = kept
    self.refusals = refusals
    self.types = types
    let memory = VolumeMemory(in: kept)
    intents = Intents(in: memory?.intents, isKept: memory?.isKept == true, worker: kept?.restarts ?? 0)
    served = ServedRequests(
      in: memory?.served, isKept: memory?.isKept == true, hasDied: kept?.lastReason?.isDeath == true)
    locks = LockTable(budget, kept: KeptLocks(in: memory?.locks))
    if memory?.isKept == true { locks.restore() }
    grants = Grants(budget)
    let slow = slow ?? SlowWork(servers: PoolSettings().servers, budget: budget)
    self.slow = slow
    reading = SealReading(slow)
    device = UInt32(truncatingIfNeeded: (try? tree.status().st_dev) ?? 0)
    listingsLast = ListingDescriptors.areLasting(on: try? tree.filesystemKind())
    attached = AttachedVolumes(tree: tree, budget)
    self.noatimeTree = noatimeTree
    readOnlyRegions = ReadOnlyRegions(say: say)
    self.settings = settings
    spellings = settings.ignoresCase ? SpellingIndex(bytes: settings.spellingBytes) : nil
    displayNames = DisplayNames(settings.languages)
    descriptors = DescriptorShare(settings.descriptors)
    arrivingFlags = ArrivingFlagsTable(seconds: settings.flagsArrivingSeconds)
    self.staging = staging.map { Staging($0) }
    metadata = Metadata(isSystem: settings.isSystem)
  }

  /// The locks on the names in a directory, and on the ends of files.
  func names(in directory: ObjectNumber) -> NameLocks {
    guard attached.haveLocks, directory.device != device else { return names }
    return attached.volume(onDevice: directory.device)?.names ?? names
  }

  func appends(to file: ObjectNumber) -> NameLocks {
    guard attached.haveLocks, file.device != device else { return appends }
    return attached.volume(onDevice: file.device)?.appends ?? appends
  }

  /// All that another worker had not answered is answered, or waits for those who serve volumes.
  package func tookOver() {
    intents.resentWait(by: -1)
    locks.releaseAll(ofViews: { views[$0] == nil })
    // A change that was under way may have reached the disk, and not all kernels.
    let leftOwnChange = kept?.takeLeftOwnChange() == true
    if views.areSeveral || leftOwnChange { forgetNames() }
  }

  /// Has the kernels of all views ask for all names anew.
  package func forgetNames() { forEachView { $0.memory.withdrawNames() } }

  /// Calls `body` for every view whose kernel has begun to ask, without a lock.
  func forEachView(_ body: (PeerView) -> Void) { for view in views.all { body(view) } }

  /// Calls `body` for each of those that may know an object, without a lock; not for `view`, which knows.
  ///
  /// With one view alone, that is a read of a counter.
  func forEachView(knowing object: ObjectNumber, besides view: UInt32?, _ body: (PeerView) -> Void) {
    guard view == nil || views.areSeveral else { return }
    let excepted = view ?? 0
    if let unindexed = views.unindexed(besides: excepted) { body(unindexed) }
    for number in interest.views(of: object, besides: excepted) {
      if let view = views[number] { body(view) }
    }
  }

  /// Whether this machine, this user and this backing filesystem let objects be opened by handles.
  package static func canUseHandles(_ tree: FD) -> Bool {
    guard let handle = tree.handle(), (try? tree.open(handle)) != nil else { return false }
    return true
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import Fuse
internal import Glibc
package import LinuxIO
package import Policy
internal import Synchronization

/// A view: what one FUSE connection shows of a volume.
///
/// Operations are in the files beside this one.
///
/// The view of the whole tree serves all users, and callers are judged by their IDs. The view of a running
/// app serves one user, and shows only what is in its scope.
package final class View: FileSystem {
  package let volume: Volume
  /// What of the tree is in it.
  let scope: ViewScope
  let audience: Audience
  /// Whose view it is; nil for that of the whole tree.
  let app: AppIdentifier?
  /// Whether it is for a backup: then what is not backed up does not exist in it.
  let isForBackup: Bool
  /// In that, what names stood for first.
  let held: HeldNames?
  /// Whether targets of links are shown as UTF-8, whatever they are (``Policy/LinkText``).
  let encodesLinks: Bool
  /// What it shows at its top; nil for a view that shows what is there.
  let filesTop: FilesTop?
  let gate: Gate
  /// Distinguishes this view's lock owners from those of other views, which their kernels number
  /// independently.
  package let number: UInt32
  let nodes: NodeTable
  let files: OpenFiles
  let directories: OpenDirectories
  let backings = Backings()
  let kernel = KernelLink()
  let memory: KernelMemory
  let moving: MovingNames
  let refusals: LookupRefusals
  let writers: WriterNotes
  let seals: SealChecks
  let siblings: GrantedSiblings
  /// Whether the kernel knows names for which nobody has looked when this worker took over.
  let hasLeftNames = Atomic<Bool>(false)
  package let granted: GrantedFiles
  /// What other views use of this one.
  let peer: PeerView
  private let passthroughRefused = Atomic<Bool>(false)
  let startedSignal: Wakeup
  let session: OrderedMutex<KeptRecords<KeptSession>>
  /// What another worker has left of it; nil for a view that begins now.
  let predecessor: KeptSession?

  /// `taken` is the number of a view that another worker has left.
  package init(
    _ volume: Volume, scope: Scope = .wholeTree, of app: AppIdentifier? = nil, user: UInt32? = nil,
    isForBackup: Bool = false, encodingLinks encodesLinks: Bool = false, showing filesTop: FilesTop? = nil,
    takingOver taken: UInt32? = nil
  ) throws(Errno) {
    self.volume = volume
    self.isForBackup = isForBackup
    self.encodesLinks = encodesLinks
    held = isForBackup ? HeldNames(volume.budget, by: Payer(user: user ?? 0)) : nil
    self.filesTop = filesTop
    self.app = app
    audience = Audience(user: user ?? (volume.settings.isSystem ? nil : ProcessID.user))
    startedSignal = try Wakeup()
    let (number, isIndexed) = volume.views.number(taken)
    self.number = number
    let places = volume.settings.ignoresCase ? scope.comparing(volume.treeNames) : scope
    self.scope = ViewScope(places, of: number, volume.siblings)
    let interest = isIndexed ? ViewInterest(all: volume.interest, view: number) : nil
    do throws(Errno) {
      let root = try volume.tree.open(Name.here, O_DIRECTORY | pathOnly)
      let kept = try ViewMemory(of: number, in: volume.kept)
      var session = KeptRecords<KeptSession>(kept.session)
      var predecessor: KeptSession?
      if kept.isKept { session.restore { _, left in predecessor = left } }
      self.predecessor = predecessor
      self.session = OrderedMutex(.leaf, session)
      nodes = try NodeTable(
        root: root, zone: .top, position: scope.root,
        handleRoot: volume.settings.fileHandles ? volume.tree : nil,
        noatimeRoot: volume.noatimeTree, attached: volume.attached, share: volume.descriptors,
        budget: volume.budget, interest: interest,
        memory: kept)
      let worker = volume.kept?.restarts ?? 0
      files = OpenFiles(in: kept.files, takingOver: kept.isKept, worker: worker) { [nodes] in
        nodes.mended($0, in: volume)
      }
      directories = OpenDirectories(in: kept.directories, takingOver: kept.isKept, worker: worker) {
        [nodes] in nodes.mended($0)
      }
    } catch {
      volume.views.ended(number)
      throw error
    }
    memory = KernelMemory(volume, nodes, kernel, audience)
    moving = MovingNames(isTakingOver: predecessor != nil)
    refusals = LookupRefusals(volume: volume, nodes: nodes, kernel: kernel, audience: audience)
    writers = WriterNotes(volume: volume, view: number, nodes: nodes, kernel: kernel, interest: interest)
    let isApps = self.scope.root.throughout == nil && filesTop == nil
    gate = Gate(volume, self.scope, nodes, audience, isApps: isApps)
    seals = SealChecks(volume, nodes, view: number)
    granted = GrantedFiles(volume, view: number, self.scope, nodes, kernel, files, gate)
    siblings = GrantedSiblings(volume, view: number, self.scope, nodes, memory, gate)
    peer = PeerView(volume, number: number, self.scope, nodes, memory, granted, siblings)
    if predecessor != nil { takeOver() } else { volume.served.forget(view: number) }
  }

  deinit {
    if !TakingOver.isUnderWay { volume.kept?.forget(.viewMemory, view: number) }
    volume.views.remove(number)
    volume.maps.ended(number)
    volume.views.ended(number)
  }

  package func started(_ connection: any Connection) {
    kernel.begin(connection)
    volume.views.add(peer)
    memory.begin(connection, knowing: predecessor.map { $0.canWithdraw != 0 })
    if predecessor != nil { unregisterLeft(connection) }
    // The kernel finds what was not looked for only if it asks for the names again.
    if hasLeftNames.load(ordering: .relaxed) { memory.withdrawNames() }
  }

  package func ended() {
    volume.views.remove(number)
    volume.grants.remove(view: number)
    volume.served.forget(view: number)
    kernel.end()
    volume.locks.releaseAll(of: number)
    held?.giveBack()
    closeAll()
    volume.maps.ended(number)
  }

  /// Waits until the kernel has its first answer; false when the time is over.
  ///
  /// Not before does it pass anything through: what is asked earlier, it refuses.
  package func waitUntilStarted(milliseconds: Int32) -> Bool {
    (try? startedSignal.fd.waitUntilReadable(milliseconds: milliseconds)) ?? false
  }

  /// The kernel's end.
  ///
  /// There is none before the first request, nor in tests without one.
  var connection: (any Connection)? { kernel.connection }

  /// Whether data goes past the daemon: the kernel can, and the backing filesystem has not refused.
  var usesPassthrough: Bool {
    kernel.passthrough && !passthroughRefused.load(ordering: .relaxed)
  }

  /// Finds out whether the kernel passes through what is on the filesystem of this file, as the store is.
  ///
  /// A filesystem that is layered over another is refused only when a file of it is registered.
  package func probePassthrough(with file: FD) {
    kernel.notify { connection in
      guard connection.passthrough else { return }
      do throws(Errno) {
        connection.unregisterBacking(try connection.registerBacking(file))
      } catch {
        if Self.forGood.contains(error) { passthroughRefused.store(true, ordering: .relaxed) }
      }
    }
  }

  /// How data goes.
  package var dataPath: DataPath {
    guard kernel.passthrough else { return .throughDaemon }
    return usesPassthrough ? .passthrough : .refused
  }

  /// What the kernel says to files of a filesystem none of whose files it passes through.
  private static let forGood: [Errno] = [.ELOOP, .EPERM, .EOPNOTSUPP, .ENOTTY, .EINVAL]

  /// The same for what lies beside, or is, such an object: of some volumes the daemon alone reads and writes.
  func usesPassthrough(on object: ObjectNumber) -> Bool {
    guard usesPassthrough else { return false }
    guard volume.attached.hasQueues, object.device != volume.device else { return true }
    return volume.attached.volume(onDevice: object.device)?.engine.passesThrough ?? false
  }

  package var hasQueues: Bool { volume.attached.hasQueues }

  package func answeredEarly() { memory.withdrawNames() }

  package func queue(of node: NodeID, lookingUp name: Name?) -> RequestQueue? {
    guard let (number, zone, isOnVolume) = nodes.with(node, { ($0.number, $0.zone, $0.isOnVolume) }) else {
      return nil
    }
    if zone.mayHoldVolumes, let name {
      // What is there is told from memory; what is not is waited for, and not for long.
      let found = volume.attached.find(
        name.buffer, in: number, ignoringCase: volume.settings.ignoresCase)
      // What one user has, another may have to wait for.
      if let found, zone != .server || found.isForAll { return nil }
      let isAwaited = volume.attached.awaited(name.buffer, in: number) != nil
      return isAwaited ? volume.attached.lookups : nil
    }
    guard isOnVolume else { return nil }
    return volume.attached.locked.queue(of: number) ?? volume.attached.queue(ofDevice: number.device)
  }

  /// Makes a file known to the kernel; nil if its data goes through the daemon.
  ///
  /// The kernel writes with the resource limits of the caller. If it refuses the first file because of its
  /// filesystem (a stacked one) or our rights, it would refuse all; but not for that of a volume.
  ///
  /// On a volume it does not know of set-user-id and set-group-id, so they have to go when it writes.
  func registerBacking(
    _ object: FD, _ number: ObjectNumber, isOnVolume: Bool, for caller: Caller
  ) -> Int32? {
    guard usesPassthrough(on: number), let connection else { return nil }
    do throws(Errno) {
      return try asCaller(caller) { () throws(Errno) in
        guard isOnVolume, caller.uid != 0 else { return try connection.registerBacking(object) }
        return try ThreadIdentity.losingSetID { () throws(Errno) in
          try connection.registerBacking(object)
        }
      }
    } catch {
      if !isOnVolume, Self.forGood.contains(error) { passthroughRefused.store(true, ordering: .relaxed) }
      return nil
    }
  }

  /// The payer for a caller's resources: an app's share is separate from its user's.
  func payer(_ caller: Caller) -> Payer { payer(of: caller.uid) }

  package func payer(of user: UInt32) -> Payer {
    Payer(user: user, view: gate.isApps ? number : 0)
  }

  /// The other views, which must learn of changes made through this one.
  var peers: PeerViews { PeerViews(volume: volume, number: number) }

  /// Attributes of an object have changed through this view, by a call whose answer does not tell the new
  /// ones.
  func attributesChanged(of object: ObjectNumber) {
    memory.dropAnswersUnderWay(about: object)
    peers.attributesChanged(of: object)
  }

  /// What `insula status` shows.
  package struct Counts: Sendable {
    package let nodes: Int
    package let descriptors: Int
    package let openFiles: Int
    package let openDirectories: Int
    package let locks: Int
    package let dataPath: DataPath
    /// How many directories, and users with all of theirs, have no names cached for a moment.
    package let uncachedDirectories: Int
    package let uncachedUsers: Int
    /// How often something was refused because it is not what was sealed.
    package let sealRefusals: UInt64
  }

  package var counts: Counts {
    let known = nodes.counts
    let uncached = memory.nameCacheBackoff.counts()
    return Counts(
      nodes: known.nodes, descriptors: known.descriptors, openFiles: files.count,
      openDirectories: directories.count, locks: volume.locks.count, dataPath: dataPath,
      uncachedDirectories: uncached.directories, uncachedUsers: uncached.owners,
      sealRefusals: volume.readOnlyRegions.refusals)
  }
}

/// How the data of files goes between a program and the store.
package enum DataPath: Sendable {
  /// The kernel reads and writes the store's files itself.
  case passthrough
  case throughDaemon
  /// The same, since the kernel can, but not with the store's filesystem.
  case refused
}

extension Object.Kind {
  init(_ status: FileStatus) {
    switch status.type {
    case S_IFREG: self = .file
    case S_IFDIR: self = .directory
    case S_IFLNK: self = .symlink
    default: self = .special
    }
  }
}

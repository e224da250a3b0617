// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
internal import Volume

// Volumes come and go:
//
//  1. What was added is in the registry. Directories are there when the tree is mounted, if that takes no
//     longer than two seconds; disks and servers as soon as they answer, or when somebody first looks for
//     them. One that is not there is tried again when somebody looks for it.
//  2. To mount a disk or a server is the helper's (`VolumeEngines`), as the user whose volume it is. No lock
//     is held meanwhile.
//  3. When the program that serves one ends, the volume is not there any more, and nothing else changes.

/// Lets directories outside the store, disks and servers be volumes of its tree, for those who ask.
final class VolumeService: Sendable {
  /// How long the mount waits for volumes that were added before: the way to one may lead through a
  /// filesystem that does not answer.
  private static let patienceMilliseconds = 2000
  /// How long a lookup of one that is not there waits: the kernel holds the lock of /Volumes meanwhile.
  private static let lookupMilliseconds = 1500
  /// For how long a user's lookups do not wait any more after one was in vain.
  private static let hurryNanoseconds: UInt64 = 30_000_000_000
  /// For how long nobody tries again what has just failed.
  private static let retryNanoseconds: UInt64 = 5_000_000_000

  let store: Store
  let volume: Volume
  let attaching: VolumeAttaching
  let engines: VolumeEngines
  let isReadOnly: Bool
  private let log: EventRecorder
  let registry: GrantService.RegistrySource
  let leases: ContainerLeases
  let shapes: AppShapes
  /// What was added on this machine; all others have no effect.
  let notes: VolumeNotes
  /// Is told when a home that lies elsewhere is found, before anybody else finds it there.
  private let homeAppears: @Sendable (_ home: String) -> Void
  /// Is told when it is there; nil before anybody wants to know.
  private let isTold = Mutex<(@Sendable (_ home: [UInt8]) -> Void)?>(nil)
  /// Changes are made one after the other; nothing in them waits for what others can make wait.
  let changes = Mutex(())
  /// The homes that are being deleted, by the numbers of their volumes.
  let deleting = Mutex<Set<Int64>>([])

  /// Why one is not there, and when that was found out.
  private struct Failure {
    let reason: String
    let time: UInt64
  }
  private struct State {
    var failures: [Int64: Failure] = [:]
    /// Those that are being mounted.
    var underWay: Set<Int64> = []
    /// Of those somebody waits for what is not uploaded yet.
    var asked: Set<Int64> = []
    /// When a user's lookup has waited in vain.
    var hurries: [UInt32: UInt64] = [:]
    /// Those that were not added on this machine.
    var unconfirmed: Set<Int64> = []
  }
  private let state = Condition(State())
  private let watch: VolumeWatch
  let servers: NetworkServers
  /// Whether what nobody uses is being looked for.
  let isMakingRoom = Atomic(false)
  /// Whether a thread waits for the last users of what has left the tree.
  let isLettingGo = Atomic(false)
  /// Tells who uses a volume; nil before anyone can.
  private let asksUsers = Mutex<(@Sendable ([AttachedVolume]) -> [[String]])?>(nil)
  /// Is told of the share of a server before it is there, and says whether it may be; nil before anybody
  /// wants to know.
  private let shareAppears = Mutex<(@Sendable (VolumeRecord) -> Bool)?>(nil)

  /// Attaches those that were added before.
  init(
    _ store: Store, _ volume: Volume, _ helper: MountHelper, _ kept: KeptState?, isReadOnly: Bool,
    serversFile: String?, log: @escaping EventRecorder, registry: @escaping GrantService.RegistrySource,
    leases: ContainerLeases, shapes: AppShapes, homeAppears: @escaping @Sendable (_ home: String) -> Void
  ) throws {
    self.leases = leases
    self.shapes = shapes
    self.homeAppears = homeAppears
    self.store = store
    self.volume = volume
    self.isReadOnly = isReadOnly
    self.log = log
    self.registry = registry
    notes = VolumeNotes(of: store)
    attaching = VolumeAttaching(store: store, volume: volume)
    engines = VolumeEngines(store, volume, helper, kept)
    servers = NetworkServers(volume, file: serversFile, helper, isReadOnly: isReadOnly)
    let failed = Mutex<(@Sendable (AttachedVolume, String) -> Void)?>(nil)
    watch = try VolumeWatch { volume, reason in failed.withLock { $0 }?(volume, reason) }
    failed.withLock { $0 = { [weak self] in self?.hasEnded($0, $1) } }
    let noted = try GrantService.atStart(registry)?.volumes()
    adoptNotes(of: noted, kept)
    let known = confirmed(try forgetUnfinished(noted ?? []))
    // Once: from here on what is kept is this worker's own.
    let left = takeOver(known)
    attach(known.filter { !isOfServer($0) && (!left.contains($0.id) || $0.isEncrypted) })
    for record in known where isOfServer(record) && !left.contains(record.id) && !isReadOnly {
      // It comes into being again for whoever looks.
      try? registry(false)?.removeVolume(record.id)
    }
    servers.begin { [weak self] in self?.awaitAll() }
    awaitAll()
  }

  /// Has `tell` know of each home that comes to be there.
  func tellOfHomes(_ tell: @escaping @Sendable (_ home: [UInt8]) -> Void) { isTold.withLock { $0 = tell } }

  /// Has `tell` know of the share of a server before it is there.
  func tellOfShares(_ tell: @escaping @Sendable (VolumeRecord) -> Bool) {
    shareAppears.withLock { $0 = tell }
  }

  /// Has `users` tell who uses a volume.
  func askUsers(_ users: @escaping @Sendable ([AttachedVolume]) -> [[String]]) {
    asksUsers.withLock { $0 = users }
  }

  /// Who uses each of some.
  func users(of volumes: [AttachedVolume]) -> [[String]] {
    asksUsers.withLock { $0 }?(volumes) ?? volumes.map { _ in [] }
  }

  /// What was being added when a worker died was never there for anybody, and what was being deleted is no
  /// more.
  private func forgetUnfinished(_ records: [VolumeRecord]) throws -> [VolumeRecord] {
    let ending: VolumeRecord.Options = [.unfinished, .doomed]
    let unfinished = records.filter { !$0.options.isDisjoint(with: ending) }
    guard !unfinished.isEmpty, !isReadOnly, let registry = try registry(true) else { return records }
    for record in unfinished {
      engines.forget(record.id)
      // A copy of the store has its original's number, and that is whole.
      let isBegunHere = notes.has(record)
      if record.options.contains(.doomed) {
        try? unlink(record)
        let isOne = try registry.hasEjectedHome(record.name, besides: record.path)
        let held = try registry.forgetHome(
          String(decoding: record.name, as: UTF8.self), on: record, isOne ? .unknown : nil)
        if isBegunHere { endDeletion(of: record, with: held) }
      }
      try registry.removeVolume(record.id)
      if isBegunHere { unnote(record) }
    }
    return records.filter { $0.options.isDisjoint(with: ending) }
  }

  /// Each user's directories on a thread of their own, and each home, disk and server on one; what takes too
  /// long comes later, or never.
  func attach(_ records: [VolumeRecord]) {
    let areAlone = { (record: VolumeRecord) in record.kind != .directory || record.place == .users }
    let others = records.filter { areAlone($0) && !$0.options.contains(.onDemand) }
    let owners = Dictionary(grouping: records.filter { !areAlone($0) }, by: \.owner)
    let pieces = owners.values + others.map { [$0] }
    eachOnItsThread(pieces, milliseconds: Self.patienceMilliseconds) { [self] piece in
      for record in piece {
        guard let why = attach(record) else { continue }
        let name = String(decoding: record.name, as: UTF8.self)
        DaemonLog.write("the volume \(name.sanitized) is not there: \(why)")
      }
    }
  }

  /// Those that are not there are mounted when somebody looks for them.
  func awaitAll() {
    let records = recordsIfReadable
    let attached = Set(volume.attached.all.map(\.record.id))
    let missing = notes.known(records).filter {
      $0.kind != .directory && !attached.contains($0.id) && !isOfServer($0)
        && !$0.options.contains(.unfinished)
    }
    let awaited = missing.map { AwaitedVolume($0, in: volume.tree, isAnnounced: false) }
    let shared = servers.shares.map { AwaitedVolume(record(of: $0), in: volume.tree, isAnnounced: true) }
    volume.attached.awaitLookups(of: (awaited + shared).compactMap(\.self)) { [weak self] in
      self?.mount($0, for: $1)
    }
  }

  /// Somebody looks for one.
  private func mount(_ awaited: AwaitedVolume, for user: UInt32) {
    guard let found = awaited.record.id == 0 ? noted(awaited, for: user) : known(awaited.record.id)
    else { return }
    let began = monotonicNanoseconds()
    let isTooEarly = state.withLock { state in
      state.failures[found.id].map { monotonicNanoseconds() &- $0.time < Self.retryNanoseconds } ?? false
    }
    if isTooEarly { return }
    let thread = try? JoinableThread(name: "volumes") { [self] in _ = attach(found) }
    guard let thread else { return }
    thread.detach()
    let owner = found.owner ?? user
    let mayWait = state.withLock { state in
      state.hurries[owner].map { monotonicNanoseconds() &- $0 > Self.hurryNanoseconds } ?? true
    }
    guard mayWait else { return }
    let isThere = { [volume] in volume.attached.attached(found.id) != nil }
    let isOver = state.wait(milliseconds: Self.lookupMilliseconds) {
      isThere() || $0.failures[found.id].map { $0.time > began } ?? false
    }
    if !isOver { state.withLock { $0.hurries[owner] = monotonicNanoseconds() } }
  }

  /// Why that was not possible; while it is under way nobody else tries, or waits here.
  @discardableResult
  func attach(_ record: VolumeRecord) -> String? {
    let isOurs = state.withLock { $0.underWay.insert(record.id).inserted }
    guard isOurs else { return VolumeFailure.hangs.message }
    var failure: Failure?
    do throws(VolumeFailure) {
      let isThere =
        record.isEncrypted
        ? volume.attached.locked.has(record.id)
        : volume.attached.attached(record.id) != nil
      if !isThere { try attachNow(record) }
    } catch {
      failure = Failure(reason: error.message, time: monotonicNanoseconds())
    }
    state.change { state in
      state.underWay.remove(record.id)
      state.failures[record.id] = failure
    }
    if record.kind != .directory { awaitAll() }
    return failure?.reason
  }

  private func attachNow(_ record: VolumeRecord) throws(VolumeFailure) {
    try requireConfirmed(record)
    // It must not be found by whoever was granted something of another one.
    if isOfServer(record), shareAppears.withLock({ $0 })?(record) == false { throw .hangs }
    guard record.kind == .directory else {
      return try changes.withLock { [mounted = try engines.mount(record).volume] _ throws(VolumeFailure) in
        try add(mounted)
      }
    }
    let directory = try opened(record)
    if record.isEncrypted {
      return try changes.withLock { _ throws(VolumeFailure) in try hold(record, directory) }
    }
    let prepared = try attaching.prepare(directory, as: record)
    try changes.withLock { _ throws(VolumeFailure) in try add(prepared) }
  }

  /// Does something about one that nobody else does meanwhile.
  func alone<Result>(
    with id: Int64, _ body: () throws(VolumeFailure) -> Result
  ) throws(VolumeFailure) -> Result {
    guard begin(with: id) else { throw .underWay }
    defer { end(with: id) }
    let result = try body()
    state.withLock { _ = $0.failures.removeValue(forKey: id) }
    return result
  }

  /// False if somebody else does something about it.
  func begin(with id: Int64) -> Bool { state.withLock { $0.underWay.insert(id).inserted } }

  func end(with id: Int64) { state.change { _ = $0.underWay.remove(id) } }

  /// Makes what was opened or mounted a part of the tree, unless it was ejected meanwhile.
  ///
  /// Whoever calls has the lock of changes.
  func add(_ attached: AttachedVolume) throws(VolumeFailure) {
    do throws(VolumeFailure) {
      try requireNoted(attached.record)
      try requireOwner(of: attached)
      try attaching.checkOverlap(attached, for: attached.record.owner ?? 0)
    } catch {
      engines.forget(attached.record.id)
      throw error
    }
    try link(attached.record)
    attach(attached)
  }

  func attach(_ attached: AttachedVolume) {
    if attached.home != nil {
      // What is sealed there is known as that before anybody finds it.
      volume.redirect(attached)
      homeAppears(String(decoding: attached.record.name, as: UTF8.self))
    }
    volume.attach(attached)
    watch.add(attached)
    if attached.home != nil { isTold.withLock { $0 }?(attached.record.name) }
  }

  func requireNoted(_ record: VolumeRecord) throws(VolumeFailure) {
    let records: [VolumeRecord]
    do throws(StoreError) { records = try registry(false)?.volumes() ?? [] } catch { throw .store(error) }
    guard records.contains(where: { $0.id == record.id }) else { throw .gone }
  }

  func reason(of id: Int64) -> String? {
    state.withLock { state in
      state.failures[id]?.reason ?? (state.underWay.contains(id) ? VolumeFailure.hangs.message : nil)
    }
  }

  /// Nothing is known of it any more.
  func forget(_ id: Int64) {
    state.withLock { state in
      state.failures.removeValue(forKey: id)
      state.unconfirmed.remove(id)
    }
    engines.forget(id)
    volume.attached.locked.remove(id)
  }

  /// How many there are that were not added on this machine.
  var unconfirmed: Int { state.withLock { $0.unconfirmed.count } }

  /// Whether one was not, or is by now.
  func note(_ id: Int64, isConfirmed: Bool) {
    state.withLock { state in
      if isConfirmed { state.unconfirmed.remove(id) } else { state.unconfirmed.insert(id) }
    }
  }

  /// Takes a volume out of the tree whose program has ended.
  private func hasEnded(_ attached: AttachedVolume, _ reason: String) {
    let name = String(decoding: attached.record.name, as: UTF8.self)
    DaemonLog.write("the volume \(name.sanitized) is gone: \(reason.sanitized)")
    // Whoever looks next has it started again; but what is encrypted is locked now.
    if !attached.record.isEncrypted {
      state.withLock { $0.failures[attached.record.id] = Failure(reason: reason.sanitized, time: 0) }
    }
    volume.detach(attached.record.id)
    engines.forget(attached.record.id)
    // Those who look after other volumes' ends do not wait for that.
    if attached.record.isEncrypted { volume.forgetContents(onDevices: [attached.device], milliseconds: 0) }
    awaitAll()
    letGo()
  }

  /// How long who takes a volume out of the tree waits for what programs have stored on it through maps.
  private static let writingMilliseconds = 3000

  /// Has the kernel write and forget what it keeps of files of volumes.
  func forgetContents(onDevices devices: [UInt32]) {
    volume.forgetContents(onDevices: devices, milliseconds: Self.writingMilliseconds)
  }

  /// Has the program end that serves one, which is no part of the tree any more.
  func end(_ attached: AttachedVolume, isHurried: Bool) {
    watch.remove(attached)
    engines.end(attached, isHurried: isHurried)
  }

  /// The mount is gone: nobody waits for a server any more.
  func finish() {
    volume.attached.locked.end()
    for words in notUploaded(after: 15) { DaemonLog.write(words) }
    for attached in volume.attached.all { end(attached, isHurried: false) }
  }

  /// What a server does not have yet that programs have closed, in words; nil if there is none, for which
  /// this waits.
  func notUploaded(on attached: AttachedVolume, after seconds: UInt8) -> String? {
    guard attached.engine.uploadsLater, let life = attached.engine.life else { return nil }
    let (id, name) = (attached.record.id, String(decoding: attached.record.name, as: UTF8.self).sanitized)
    // Nothing tells the answers to two apart.
    guard state.withLock({ $0.asked.insert(id).inserted }) else {
      return "\(name): another command waits until all files are uploaded"
    }
    defer { state.withLock { _ = $0.asked.remove(id) } }
    watch.remove(attached)
    defer { watch.add(attached) }
    return MountHelper.awaitUploads(of: life, seconds: seconds).map { words in
      "\(name): \(words.sanitized) until the volume is there again"
    }
  }

  /// The same of all volumes.
  func notUploaded(after seconds: UInt8) -> [String] {
    let end = monotonicNanoseconds() + UInt64(seconds) * 1_000_000_000
    var all: [String] = []
    for attached in volume.attached.all {
      let left = UInt8(clamping: millisecondsLeft(until: end) / 1000)
      if let words = notUploaded(on: attached, after: left) { all.append(words) }
    }
    return all
  }

  func tell(_ event: LogEntry.Event, _ record: VolumeRecord, by user: UInt32) {
    let path = String(decoding: record.path, as: UTF8.self)
    var entry = LogEntry(now: event, user: record.owner, by: user, detail: path)
    entry.setPath(Array(record.treePath.joined(separator: "/".utf8)))
    log([entry])
  }
}

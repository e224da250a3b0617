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

// Encrypted volumes are locked and unlocked:
//
//  1. A password comes in a pipe, which goes on to gocryptfs: nobody here reads it. gocryptfs runs as the
//     user whose volume it is.
//  2. The directory is opened once, and must be the one that was added; gocryptfs gets it open. What lies at
//     its path meanwhile makes no difference.
//  3. To lock it is to have gocryptfs end, with the keys in its memory; who locks waits for that. Who locks
//     several has all of them end at once, so that one that does not answer gives the keys of others no time.
//     A volume whose gocryptfs ends for another reason is locked too. What was to be unlocked before stays
//     locked, and its gocryptfs ends. What the kernel keeps of its files in the tree goes too.
//  4. Nothing but a password unlocks it: no key is kept, nobody tries again.
//  5. The encrypted files of a volume that has a size are on a disk of their own (`EncryptedDisk`), which the
//     kernel serves for gocryptfs alone, and no longer than that needs it.

extension VolumeService {
  private static let endMilliseconds: Int32 = 25_000
  /// How long who locks waits for disks together: nothing on them can be read without a password.
  private static let diskMilliseconds = 5000

  /// Knows an encrypted volume whose directory is there; whoever calls has the lock of changes.
  func hold(_ record: VolumeRecord, _ directory: SharedFD) throws(VolumeFailure) {
    try requireNoted(record)
    volume.attached.hold(record, at: try checkPlace(of: record, directory, for: record.owner ?? 0))
  }

  /// Where those wait who look into it; nil if nobody does.
  ///
  /// What is a part of another volume too can't be such a place.
  @discardableResult
  func checkPlace(
    of record: VolumeRecord, _ directory: SharedFD, for user: UInt32
  ) throws(VolumeFailure) -> AttachedVolume? {
    let place: AttachedVolume
    do throws(Errno) {
      let queue = RequestQueue(budget: volume.budget, isForOne: true)
      place = try AttachedVolume(
        record, LockedVolumes.engine(queue), of: directory, root: directory, in: volume.tree)
    } catch {
      throw .mount(error)
    }
    if volume.attached.overlapsStore(place, store.tree) { throw .overlapsStore }
    guard record.options.contains(.waits) else { return nil }
    try attaching.checkOverlap(place, for: user)
    return place
  }

  // MARK: Unlocking

  /// `locks` are those that were known when it was asked for.
  func unlock(
    _ name: String, of owner: UInt32?, _ call: ControlCall, after locks: [Int64: Int]
  ) throws(ControlFailure) -> VolumeDescription {
    let record = try findEncrypted(name, of: owner, for: call.caller.uid)
    if engine(of: record) != nil { return describe(record) }
    guard let password = call.descriptor, FD(password.number).isKnownPipe else {
      throw ControlFailure("no password has come along", .EINVAL)
    }
    let holders = engines.keyHolders
    do throws(VolumeFailure) {
      try alone(with: record.id) { () throws(VolumeFailure) in
        let directory = try opened(record)
        try EncryptedDirectory.check(FD(directory.number))
        if !volume.attached.locked.has(record.id) {
          try changes.withLock { _ throws(VolumeFailure) in try hold(record, directory) }
        }
        do throws(VolumeFailure) {
          try start(record, directory, password, after: locks[record.id])
        } catch {
          holders.end(record.id)
          throw holders.locks[record.id] == locks[record.id]
            ? error : .engine(EngineFailure(.ECANCELED, "it was locked meanwhile"))
        }
      }
    } catch {
      let why = "\(name.sanitized) can't be unlocked: \(error.message)"
      guard case .engine(let failure) = error else { throw ControlFailure(why, .EINVAL) }
      throw ControlFailure(why, failure.error)
    }
    tell(.volumeUnlocked, record, by: call.caller.uid)
    return describe(record)
  }

  private func start(
    _ record: VolumeRecord, _ directory: SharedFD, _ password: SharedFD, after locks: Int?
  ) throws(VolumeFailure) {
    let holders = engines.keyHolders
    var handed = [directory, password]
    let disk = try EncryptedDisk(in: directory, of: record.owner ?? 0)
    if disk == nil, record.options.contains(.hasDisk) {
      throw .configuration("its \(EncryptedFiles.disk) is missing; put it back where it was")
    }
    if let disk {
      handed = [try engines.mountDisk(of: record, disk.image).root, password, directory]
    }
    let mounted = try engines.mount(
      record, .encrypted(hasDisk: disk != nil), handed: handed
    ) { (life) throws(Errno) in
      guard holders.add(life, of: record.id, after: locks) else { throw .ECANCELED }
    }
    try changes.withLock { _ throws(VolumeFailure) in
      guard holders.locks[record.id] == locks else {
        engines.forget(record.id, isEnding: true)
        throw .underWay
      }
      try add(mounted.volume)
    }
  }

  private func findEncrypted(
    _ name: String, of owner: UInt32?, for user: UInt32
  ) throws(ControlFailure) -> VolumeRecord {
    let record = try find(name, of: owner, for: user)
    guard record.isEncrypted else {
      throw ControlFailure(
        "\(name.sanitized) is not encrypted, so there is nothing to lock; 'insula volume eject' ejects it",
        .EINVAL)
    }
    return record
  }

  // MARK: Locking

  /// Locks one, or all that are unlocked of a user, or of all for root; what can't be locked stops no other.
  func lock(
    _ name: String?, of owner: UInt32?, isForced: Bool, waits: Bool?, by user: UInt32, _ users: VolumeUsers
  ) throws(ControlFailure) -> [VolumeDescription] {
    var meant: [VolumeRecord]
    if let name {
      meant = [try findEncrypted(name, of: owner, for: user)]
    } else {
      meant = try records(for: user).filter(\.isEncrypted)
    }
    engines.keyHolders.lock(meant.map(\.id))
    if name == nil { meant.removeAll { engine(of: $0) == nil && !engines.keyHolders.has($0.id) } }
    var failures: [ControlFailure] = []
    var ending: [(record: VolumeRecord, device: UInt32?)] = []
    func device(_ record: VolumeRecord) -> UInt32? { volume.attached.attached(record.id)?.device }
    // Whoever holds a volume itself keeps gocryptfs from ending.
    if isForced { forgetContents(onDevices: meant.compactMap(device)) }
    for record in meant {
      do throws(ControlFailure) {
        let known = try waits.map { (waits) throws(ControlFailure) in try change(record, waits: waits) }
        let device = device(record)
        if try detach(record, isForced, users) { tell(.volumeLocked, record, by: user) }
        engines.keyHolders.end(record.id)
        ending.append((known ?? record, device))
      } catch {
        failures.append(error)
      }
    }
    letGo()
    let locked = awaitEnds(of: ending.map(\.record), &failures)
    // With the keys goes what was decrypted.
    forgetContents(onDevices: ending.compactMap(\.device))
    awaitDisks(of: meant)
    guard let first = failures.first else { return locked }
    throw failures.count == 1
      ? first : ControlFailure(failures.map(\.message).joined(separator: "\n"), first.cause)
  }

  /// Waits until what has the keys of volumes has ended, no longer for all than for one.
  ///
  /// Gives what is locked.
  private func awaitEnds(
    of records: [VolumeRecord], _ failures: inout [ControlFailure]
  ) -> [VolumeDescription] {
    let end = monotonicNanoseconds() + UInt64(Self.endMilliseconds) * 1_000_000
    return records.compactMap { record in
      if engines.keyHolders.end(record.id, milliseconds: Int32(clamping: millisecondsLeft(until: end))) {
        return describe(record)
      }
      let name = String(decoding: record.name, as: UTF8.self).sanitized
      failures.append(
        ControlFailure(
          "\(name) is locked for all programs, but gocryptfs has not ended and may have its keys in memory; "
            + "'insula doctor' says which process it is", .ETIMEDOUT))
      return nil
    }
  }

  /// Waits for a while until the kernel has brought all to disks with encrypted files.
  ///
  /// Each user's on a thread of their own, in turns: the way to a directory may lead through a filesystem
  /// that does not answer, and a user may keep a file of that name locked that is no disk.
  private func awaitDisks(of records: [VolumeRecord]) {
    let end = monotonicNanoseconds() + UInt64(Self.diskMilliseconds) * 1_000_000
    let known = notes.known(records.filter { $0.options.contains(.hasDisk) })
    let owners = Dictionary(grouping: known, by: \.owner).values
    let left = Condition(owners.count)
    for records in owners {
      let thread = try? JoinableThread(name: "disks") {
        var used = records
        while true {
          used.removeAll { record in
            guard let directory = try? record.openDirectory() else { return true }
            return !EncryptedDisk.isInUse(in: directory.fd)
          }
          if used.isEmpty || monotonicNanoseconds() >= end { break }
          poll(nil, 0, 20)
        }
        left.change { $0 -= 1 }
      }
      if let thread { thread.detach() } else { left.change { $0 -= 1 } }
    }
    _ = left.wait(milliseconds: Self.diskMilliseconds) { $0 == 0 }
  }

  /// Notes whether who looks into it waits while it is locked.
  private func change(_ record: VolumeRecord, waits: Bool) throws(ControlFailure) -> VolumeRecord {
    guard record.options.contains(.waits) != waits else { return record }
    guard !isReadOnly else { throw ControlFailure(StoreError.mountedReadOnly) }
    var changed = record
    if waits { changed.options.insert(.waits) } else { changed.options.remove(.waits) }
    do throws(VolumeFailure) {
      let directory = try opened(record)
      try changes.withLock { _ throws(VolumeFailure) in
        try checkPlace(of: changed, directory, for: record.owner ?? 0)
        do throws(StoreError) {
          try registry(false)?.setOptions(changed.options, ofVolume: record.id)
        } catch {
          throw .store(error)
        }
        try hold(changed, directory)
      }
    } catch {
      let name = String(decoding: record.name, as: UTF8.self).sanitized
      throw ControlFailure("nobody can wait for \(name): \(error.message)", .EINVAL)
    }
    return changed
  }

  /// Takes it out of the tree and has its program end; whether it was there.
  private func detach(
    _ record: VolumeRecord, _ isForced: Bool, _ users: VolumeUsers
  ) throws(ControlFailure) -> Bool {
    while let attached = volume.attached.attached(record.id) {
      let opens = try isForced ? 0 : requireUnused(attached, users)
      // Nobody unlocks it before it is clear whether it stays.
      let isAlone = begin(with: record.id)
      defer { if isAlone { end(with: record.id) } }
      let isTaken = try changes.withLock { _ throws(ControlFailure) in
        guard volume.attached.attached(record.id) === attached else { return false }
        if !isForced { try requireUnused(attached, since: opens, users) }
        volume.detach(record.id)
        return true
      }
      guard isTaken else { continue }
      do throws(ControlFailure) {
        // Who has come since they were counted keeps it.
        if !isForced { try requireUnused(attached, users) }
      } catch {
        guard !takeBack(attached) else { throw error }
      }
      changes.withLock { _ in
        engines.forget(record.id, isEnding: true)
        end(attached, isHurried: isForced)
      }
      return true
    }
    return false
  }

  /// Makes it a part of the tree again, unless it has been ejected since.
  private func takeBack(_ attached: AttachedVolume) -> Bool {
    changes.withLock { _ in
      guard volume.attached.attached(attached.record.id) == nil,
        (try? requireNoted(attached.record)) != nil
      else { return false }
      volume.attach(attached)
      return true
    }
  }
}

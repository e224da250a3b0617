// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
internal import Volume

// Volumes leave the tree, and homes may be deleted with that.

extension VolumeService {
  /// How long who ejects a volume, or unmounts the tree, waits for uploads.
  static let uploadSeconds: UInt8 = 20

  func eject(
    _ name: String, of owner: UInt32?, isForced: Bool, deletesHome: Bool, by user: UInt32,
    _ users: VolumeUsers, _ ejected: @escaping @Sendable (_ place: [[UInt8]]) -> Void
  ) throws(ControlFailure) -> VolumeDescription {
    guard !isReadOnly else { throw ControlFailure(StoreError.mountedReadOnly) }
    let known = try findOwn(name, of: owner, for: user)
    try requireNotDeleting(known)
    var left: String?
    var opens = 0
    let attached = volume.attached.attached(known.id)
    if let attached {
      if !isForced { try requireUnused(attached, users) }
      left = notUploaded(on: attached, after: isForced ? 0 : Self.uploadSeconds)
      if let left, !isForced {
        throw ControlFailure("not ejected yet; '--force' does it now. \(left)", .inUse)
      }
      // Uploads may have taken long.
      if !isForced { opens = try requireUnused(attached, users) }
      // What is open on it is of no use to anybody afterwards.
      if isForced, attached.engine.queue != nil { forgetContents(onDevices: [attached.device]) }
    }
    if deletesHome {
      guard let attached else { throw ControlFailure("\(name.sanitized) is no home that is there", .EINVAL) }
      return try deleteHome(known, attached, since: isForced ? nil : opens, users, by: user, ejected)
    }
    let (described, gone) = try changes.withLock { _ throws(ControlFailure) in
      let known = try findOwn(name, of: owner, for: user)
      try requireNotDeleting(known)
      let attached = volume.attached.attached(known.id)
      if !isForced, let attached { try requireUnused(attached, since: opens, users) }
      let described = try leave(known, missing: left, by: user) { (registry) throws(StoreError) in
        if known.place == .users {
          try registry.ejectHome(known, droppingGrants: isForced)
        } else {
          try registry.ejectVolume(known)
        }
      }
      if known.place == .network { removeDirectory(known.name) }
      return (described, attached)
    }
    // Others do not wait for what may take long; and its disk is there until that is done.
    defer { if let gone { end(gone, isHurried: isForced) } }
    ejected(known.treePath)
    awaitAll()
    return described
  }

  /// Takes a volume out of the tree, and has the registry forget what is to be forgotten of it.
  private func leave(
    _ known: VolumeRecord, missing: String? = nil, by user: UInt32,
    _ forget: (Registry) throws(StoreError) -> Void
  ) throws(ControlFailure) -> VolumeDescription {
    // A record without a link is mended at the next mount, a link without a record never.
    do throws(VolumeFailure) { try unlink(known) } catch {
      throw ControlFailure(error, path: String(decoding: known.name, as: UTF8.self).sanitized)
    }
    do throws(StoreError) {
      if let registry = try registry(false) { try forget(registry) }
    } catch {
      throw ControlFailure(error)
    }
    unnote(known)
    volume.detach(known.id)
    volume.forgetDisk(known)
    let described = VolumeDescription(
      known, nil, missing: missing ?? reason(of: known.id), isReadOnly: false)
    self.forget(known.id)
    tell(.volumeEjected, known, by: user)
    return described
  }

  // MARK: Homes that are deleted

  /// Deletes a home, on the thread of that home: its disk or server may not answer, and then nobody else
  /// waits for it.
  ///
  /// Who asks for it waits for as long as it takes, unless the home can't be taken from its place soon: then
  /// it is deleted when it answers.
  private func deleteHome(
    _ known: VolumeRecord, _ attached: AttachedVolume, since opens: Int?, _ users: VolumeUsers,
    by user: UInt32, _ ejected: @escaping @Sendable (_ place: [[UInt8]]) -> Void
  ) throws(ControlFailure) -> VolumeDescription {
    let name = String(decoding: known.name, as: UTF8.self).sanitized
    guard let home = attached.home else { throw ControlFailure("\(name) is no home that is there", .EINVAL) }
    try changes.withLock { _ throws(ControlFailure) in
      try requireNotDeleting(known)
      if let opens { try requireUnused(attached, since: opens, users) }
      deleting.withLock { _ = $0.insert(known.id) }
    }
    let isTaken = Condition(false)
    let isLate = Condition(false)
    typealias Outcome = Result<VolumeDescription, ControlFailure>
    let deletion = { @Sendable [self] () -> Outcome in
      defer { deleting.withLock { _ = $0.remove(known.id) } }
      let result: Outcome
      do throws(ControlFailure) {
        // It may have waited long.
        if let opens { try requireUnused(attached, since: opens, users) }
        let described = try deleteHomeNow(known, attached, home, by: user, ejected) {
          isTaken.change { $0 = true }
        }
        result = .success(described)
      } catch {
        if isLate.withLock({ $0 }) { DaemonLog.write("can't remove the home of \(name): \(error.message)") }
        result = .failure(error)
      }
      isTaken.change { $0 = true }
      letGo()
      return result
    }
    let place = store.homeElsewhere(named: known.name)
    guard let work = place.flatMap({ HomeWork.ofProcess.begin(in: $0, deletion) }) else {
      deleting.withLock { _ = $0.remove(known.id) }
      throw ControlFailure("too much waits for the home of \(name); try again later", .EBUSY)
    }
    let isSoon = isTaken.wait(milliseconds: Self.homePatienceMilliseconds) { $0 }
    if !isSoon {
      isLate.change { $0 = true }
      throw ControlFailure(
        "the home of \(name) is on a disk or server that does not answer; it is removed when that answers")
    }
    while true {
      let end = monotonicNanoseconds() &+ 60_000_000_000
      if let result = work.value(until: end) { return try result.get() }
    }
  }

  /// So long who has a home deleted waits for its disk or server, and until it is known whether another
  /// machine uses it.
  private static let homePatienceMilliseconds = 20_000

  private func deleteHomeNow(
    _ known: VolumeRecord, _ attached: AttachedVolume, _ home: RedirectedNames.Target, by user: UInt32,
    _ ejected: (_ place: [[UInt8]]) -> Void, isTaken: () -> Void
  ) throws(ControlFailure) -> VolumeDescription {
    let name = String(decoding: known.name, as: UTF8.self)
    let contents: HomeContents?
    do throws(StoreError) {
      // What is not in it is noted of another home of that name.
      let registry = try registry(false)
      let isOne = try registry?.hasEjectedHome(known.name, besides: known.path) ?? false
      contents = if isOne, let registry { try store.contents(ofHome: name, registry) } else { nil }
    } catch {
      throw ControlFailure(error)
    }
    let (taken, hold) = try take(home, of: known)
    var held: [String] = []
    let described: VolumeDescription
    do throws(ControlFailure) {
      described = try changes.withLock { _ throws(ControlFailure) in
        try leave(known, by: user) { (registry) throws(StoreError) in
          held = try registry.forgetHome(name, on: known, contents)
          try shapes.noteGone(registry)
          try registry.removeVolume(known.id)
        }
      }
    } catch {
      hold?.end()
      throw error
    }
    // Its disk is there until nothing is left of it, and until then nobody begins to use it.
    defer { end(attached, isHurried: false) }
    defer { hold?.end() }
    isTaken()
    ejected(known.treePath)
    awaitAll()
    do throws(StoreError) { try taken.remove(with: held) } catch { throw ControlFailure(error) }
    return described
  }

  /// Throws for a home that is being deleted; under the lock of changes.
  private func requireNotDeleting(_ known: VolumeRecord) throws(ControlFailure) {
    guard deleting.withLock({ !$0.contains(known.id) }) else {
      let name = String(decoding: known.name, as: UTF8.self).sanitized
      throw ControlFailure("the home of \(name) is being removed; it goes when its disk or server answers")
    }
  }

  /// Takes the volumes of a user out of the tree that are noted no more, since nothing is that counts for the
  /// user's number.
  func removeForgotten(of user: UInt32) {
    let gone = changes.withLock { _ -> [AttachedVolume] in
      // Without knowing what is noted, nothing goes.
      guard let registry = try? registry(false), let noted = try? registry.volumes() else { return [] }
      let ids = Set(noted.map(\.id))
      func isForgotten(_ record: VolumeRecord) -> Bool { record.owner == user && !ids.contains(record.id) }
      let attached = volume.attached.all.filter { isForgotten($0.record) }
      let locked = volume.attached.locked.records.filter { record in
        isForgotten(record) && !attached.contains { $0.record.id == record.id }
      }
      for record in attached.map(\.record) + locked {
        volume.detach(record.id)
        forget(record.id)
        tell(.volumeEjected, record, by: 0)
      }
      return attached
    }
    awaitAll()
    for attached in gone { end(attached, isHurried: true) }
    letGo()
  }

  private func findOwn(
    _ name: String, of owner: UInt32?, for user: UInt32
  ) throws(ControlFailure) -> VolumeRecord {
    let known = try find(name, of: owner, for: user)
    guard known.owner == user || user == 0 else {
      throw ControlFailure("\(name.sanitized) was added by root, and only root can eject it", .EPERM)
    }
    return known
  }
}

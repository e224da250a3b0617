// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
internal import Volume

// Only what was added on this machine is a volume here: see `VolumeNotes`.

extension VolumeService {
  /// The directory of a volume that was added before, as far as it may still be one.
  func opened(_ record: VolumeRecord) throws(VolumeFailure) -> SharedFD {
    try requireConfirmed(record)
    let directory = SharedFD(try record.openDirectory())
    _ = try attaching.kind(of: FD(directory.number))
    try attaching.check(record, FD(directory.number), asOf: try attaching.owner(of: record))
    return directory
  }

  /// Those that were added on this machine; the log says which were not.
  func confirmed(_ records: [VolumeRecord]) -> [VolumeRecord] {
    let known = notes.known(records)
    let ids = Set(known.map(\.id))
    for record in records where !ids.contains(record.id) && !isOfServer(record) {
      note(record.id, isConfirmed: false)
      DaemonLog.write("the volume \(record.title.sanitized) is not there: \(unconfirmed(record).message)")
    }
    return known
  }

  func requireConfirmed(_ record: VolumeRecord) throws(VolumeFailure) {
    let isConfirmed = notes.has(record)
    note(record.id, isConfirmed: isConfirmed)
    guard isConfirmed else { throw unconfirmed(record) }
  }

  func unconfirmed(_ record: VolumeRecord) -> VolumeFailure {
    .unconfirmed(title: record.title, isSystem: store.description.mode == .system)
  }

  /// Notes what an earlier version serves here, whose workers did not note it: it was mounted on this machine
  /// with these volumes.
  ///
  /// `records` are nil if the registry can't be read.
  func adoptNotes(of records: [VolumeRecord]?, _ kept: KeptState?) {
    guard let kept else { return }
    if kept.hasPredecessor, !kept.notesVolumes {
      // A later worker may be able to.
      guard let records else { return }
      do throws(StoreError) { try notes.add(records) } catch {
        DaemonLog.write("what an earlier version has served as volumes can't be noted: \(error)")
      }
    }
    kept.notesVolumes = true
  }

  /// Notes a volume, and has the registry know it; what that does not take leaves no note.
  func add(_ record: VolumeRecord, to registry: Registry) throws(StoreError) -> VolumeRecord {
    let isNew = try notes.add([record])
    do throws(StoreError) { return try registry.add(record) } catch {
      if isNew { unnote(record) }
      throw error
    }
  }

  /// A volume is no more; a note that stays lets nobody add another one.
  func unnote(_ record: VolumeRecord) {
    do throws(StoreError) { try notes.remove(record) } catch { DaemonLog.write("\(error)") }
  }

  /// Lets one be in the tree that somebody has seen, and lets count here.
  func confirm(
    _ name: String, seen: VolumeDescription, by user: UInt32
  ) throws(ControlFailure) -> VolumeDescription {
    guard store.description.mode != .system || user == 0 else {
      throw ControlFailure("only root lets a volume be there that was not added on this machine", .EPERM)
    }
    let record = try find(name, of: seen.owner, for: user)
    guard describe(record).isSame(as: seen) else {
      throw ControlFailure(
        "\(name.sanitized) is another volume than the one that was shown; nothing was changed", .ESTALE)
    }
    // Nobody has begun here to add or delete it.
    do throws(StoreError) {
      let isNew = try notes.add([record.isNow([])])
      // Root says of a home that it is the account's of its name; whom the store names is another machine's.
      if isNew, record.place == .users { try registry(true)?.forgetOwner(ofHome: record.id) }
    } catch {
      throw ControlFailure(error)
    }
    note(record.id, isConfirmed: true)
    tell(.volumeAdded, record, by: user)
    if !record.options.contains(.onDemand) { attach([record]) }
    awaitAll()
    return describe(record)
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization

// What a kernel has of files and listings on volumes whose data goes through the daemon: whether it may keep
// that when they are opened again.
//
//  1. It may if they are what they were at an earlier open: on the same attached volume, of the same size and
//     times. That is noted at each open, before the kernel reads.
//  2. Two changes within one tick of a filesystem's clock leave the same times. So what is noted counts only
//     if no change that comes later can have its times: the last one was a while before.
//  3. A server's clock is not ours. There the same times must have been seen a while before.
//  4. A file that nobody else can change, whose one node is the kernel's and in one view, changes by that
//     kernel's doing alone, which keeps its pages right. Of such a file it is enough that it has been opened
//     so. Another node of it, by another name, ends that when it is opened, or as long as it is there.
//  5. A listing of a disk without owners that nobody else changes is what it was if no name on the disk was
//     changed since: exfat-fuse has a number for each spelling of a directory's name, and changes no times
//     when something is renamed.
//  6. What is not noted, for whatever reason, is read again.

/// See the rules above.
final class KeptContents: Sendable {
  private struct Record {
    let node: NodeID
    let volume: UInt64
    /// Whether it changes by our doing alone, and then ``modified`` counts what we have done.
    var isOurs = false
    var size: Int64 = -1
    var modified: Int64 = 0
    var changed: Int64 = 0
    /// When it was first seen so.
    var since = monotonicNanoseconds()
    var isSettled = false

    func isOfSame(_ other: Record) -> Bool { node == other.node && volume == other.volume }

    func isLike(_ other: Record) -> Bool {
      isOfSame(other) && size == other.size && modified == other.modified && changed == other.changed
    }

    /// For how long a later change may have the same times: servers and FAT know whole seconds, or two.
    var tick: Int64 {
      let isFine = modified % 1_000_000 != 0 || changed % 1_000_000 != 0
      return isFine ? 100_000_000 : 2_100_000_000
    }
  }
  private let records = Mutex<[ObjectNumber: Record]>([:])
  private static let most = 4096
  /// Directories of whose whole listing the kernel has been told just now, which it keeps for a moment.
  let listed = Lately()
  /// Directories at which their server was asked to look just now.
  let judged = Lately()

  /// Whether an object that is being opened is surely what it was when the kernel last read it.
  ///
  /// `changes` counts those that there may have been, if the fourth or the fifth rule holds; else `status` is
  /// asked.
  func isUnchanged(
    _ node: NodeID, _ number: ObjectNumber, on volume: AttachedVolume, changes: Int64?,
    _ status: () throws(Errno) -> FileStatus
  ) -> Bool {
    var new = Record(node: node, volume: volume.serial)
    let known = records.withLock { $0[number] }.flatMap { $0.isOfSame(new) ? $0 : nil }
    if let changes {
      if let known, known.isOurs, known.modified == changes { return true }
      (new.isOurs, new.modified) = (true, changes)
      note(new, number)
      return false
    }
    guard let status = try? status() else {
      forget(number)
      return false
    }
    new.size = Int64(status.st_size)
    (new.modified, new.changed) = (status.st_mtim.nanoseconds, status.st_ctim.nanoseconds)
    if let known, known.isLike(new) {
      if known.isSettled { return true }
      new.since = min(known.since, new.since)
    }
    let age =
      volume.record.kind == .server
      ? Int64(clamping: monotonicNanoseconds() &- new.since)
      : wallMilliseconds() &* 1_000_000 &- max(new.modified, new.changed)
    new.isSettled = age > new.tick
    note(new, number)
    return false
  }

  private func note(_ record: Record, _ number: ObjectNumber) {
    records.withLock { records in
      if records.count >= Self.most { records.removeAll() }
      records[number] = record
    }
  }

  /// It is changed through one of its nodes, by which another one's pages do not become right.
  func changed(_ number: ObjectNumber, by node: NodeID) {
    records.withLock { records in
      if let known = records[number], known.node != node { records[number] = nil }
    }
  }

  /// What the kernel has of it may be wrong.
  func forget(_ number: ObjectNumber) {
    records.withLock { if !$0.isEmpty { $0[number] = nil } }
  }
}

/// What was done to which nodes less than a second ago.
final class Lately: Sendable {
  private let times = Mutex<[UInt64: UInt64]>([:])

  /// Whether it was done to this one; if not, it is from now on.
  func isAgain(_ node: NodeID) -> Bool {
    let now = monotonicNanoseconds()
    return times.withLock { times in
      if let then = times[node.raw], Double(now &- then) < AttachedVolumes.cacheSeconds * 1e9 { return true }
      if times.count >= 64 { times.removeAll() }
      times[node.raw] = now
      return false
    }
  }
}

extension View {
  /// Whether nobody but us changes what is on the volume on which something lies.
  ///
  /// `exactly` asks besides whether each spelling is a name of its own.
  func isAlone(_ object: borrowing NodeTable.Reference, exactly: Bool = false) -> Bool {
    isAlone(onVolume: object.volume, exactly: exactly)
  }

  /// The same by the number of a volume, which is 0 for the tree itself.
  func isAlone(onVolume number: UInt32, exactly: Bool = false) -> Bool {
    guard let engine = volume.attached.volume(numbered: number)?.engine else { return false }
    return engine.isAlone && (!exactly || engine.hasExactNames)
  }

  /// By what an object is judged: on a volume that only we change what the kernel remembers, without a
  /// question to its program.
  ///
  /// A file with owners may have several names, of which the kernel knows nothing. After each change in a
  /// directory its kernel asks again. One that a server lets us use as one user is looked at once a second
  /// all the same: the server's own refusal stands. What is sealed is known by its times, too.
  func judgedStatus(of object: borrowing NodeTable.Reference) throws(Errno) -> FileStatus {
    guard let engine = volume.attached.volume(numbered: object.volume)?.engine else {
      return try object.fd.status()
    }
    let hasNoOwners = object.zone.hasNoOwners
    if engine.isAlone || engine.queue != nil && hasNoOwners {
      let status = try object.fd.statusInMemory()
      if engine.isAlone, status.isDirectory || hasNoOwners { return status }
      if status.isDirectory {
        return memory.kept.judged.isAgain(object.id) ? status : try object.fd.statusAnew()
      }
    }
    return object.zone.isReadOnlyRegion ? try object.fd.status() : try object.fd.standing()
  }

  /// Whether what the kernel has of an object on a volume may stay when it is opened.
  ///
  /// That is looked up by `descriptor`; nil stands for what nobody reads.
  func isUnchanged(
    _ object: borrowing NodeTable.Reference, by descriptor: FD?, isDirectory: Bool = false
  ) -> Bool {
    guard let found = volume.attached.volume(numbered: object.volume), found.engine.tellsChanges else {
      return false
    }
    let engine = found.engine
    let isSole =
      !isDirectory && engine.isAlone && engine.hasExactNames && !volume.views.areSeveral
      && nodes.isSole(object.number)
    let changes: Int64? =
      isDirectory && engine.isAlone && object.zone.hasNoOwners ? found.nameChanges : isSole ? 0 : nil
    let isUnchanged = memory.kept.isUnchanged(object.id, object.number, on: found, changes: changes) {
      () throws(Errno) in
      guard let descriptor else { throw .ENODATA }
      return try descriptor.statusAnew()
    }
    // Another one has come meanwhile, whose open may have been noted before.
    if isSole, !nodes.isSole(object.number) { memory.kept.forget(object.number) }
    return isUnchanged
  }
}

extension NodeTable {
  /// Whether an object has one node, and so no other name that the kernel knows.
  fileprivate func isSole(_ object: ObjectNumber) -> Bool {
    state.withLock { $0.count(of: object) == 1 }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Synchronization

/// The locks that are held, for the next worker; who waits for one asks again.
///
/// What comes is noted before what goes is forgotten. So a worker that dies in between leaves some bytes
/// locked twice, and of two the later one counts.
final class KeptLocks: Sendable {
  struct Record: BitwiseCopyable {
    var sequence: UInt64
    var inode: UInt64
    var device: UInt32
    var view: UInt32
    var owner: UInt64
    var handle: UInt64
    var first: Int64
    var last: Int64
    var pid: Int32
    var payer: UInt32
    var payerView: UInt32
    var isFlock: UInt8
    var isWrite: UInt8
  }
  static let capacity = 1 << 18
  static var size: Int { KeptRecords<Record>.size(capacity) }

  private struct State {
    var records: KeptRecords<Record>
    var free: [Int32] = []
    var count: Int32 = 0
    var sequence: UInt64 = 0
  }
  private let state: OrderedMutex<State>
  private let isOn: Bool

  init(in region: SharedRegion?) {
    isOn = region != nil
    state = OrderedMutex(.leaf, State(records: KeptRecords(region)))
  }

  /// Notes a lock; gives where.
  func add(_ lock: HeldLock, on object: ObjectNumber, _ style: LockTable.Style) -> Int32 {
    guard isOn else { return -1 }
    return state.withLock { state in
      let place = state.free.popLast() ?? state.count
      if place == state.count { state.count += 1 }
      state.sequence &+= 1
      let record = Record(
        sequence: state.sequence, inode: object.inode, device: object.device, view: lock.holder.view,
        owner: lock.holder.owner.raw, handle: lock.handle.raw, first: lock.range.first, last: lock.range.last,
        pid: lock.range.pid, payer: lock.payer.user, payerView: lock.payer.view,
        isFlock: style == .flock ? 1 : 0, isWrite: lock.range.kind == .write ? 1 : 0)
      state.records.set(Int(place), record)
      return place
    }
  }

  func remove(_ place: Int32) {
    guard isOn, place >= 0 else { return }
    state.withLock { state in
      state.records.clear(Int(place))
      state.free.append(place)
    }
  }

  /// One that another worker has left.
  struct Left {
    let object: ObjectNumber
    let style: LockTable.Style
    let lock: HeldLock
  }

  /// What another worker has left, in the order in which it was locked.
  func restore() -> [Left] {
    state.withLock { state in
      var found: [(sequence: UInt64, left: Left)] = []
      state.records.restore { place, record in
        while state.count < place {
          state.free.append(state.count)
          state.count += 1
        }
        state.count = Int32(place) + 1
        state.sequence = max(state.sequence, record.sequence)
        guard record.first >= 0, record.first <= record.last else { return }
        found.append((record.sequence, Left(record, at: Int32(place))))
      }
      return found.inOrder { $0.sequence < $1.sequence }.map(\.left)
    }
  }
}

extension KeptLocks.Left {
  fileprivate init(_ record: KeptLocks.Record, at place: Int32) {
    object = ObjectNumber(inode: record.inode, device: record.device)
    style = record.isFlock != 0 ? .flock : .posix
    let range = LockRange(
      kind: record.isWrite != 0 ? .write : .read, first: record.first, last: record.last, pid: record.pid)
    lock = HeldLock(
      holder: LockHolder(view: record.view, owner: LockOwner(record.owner)), handle: HandleID(record.handle),
      range: range, payer: Payer(user: record.payer, view: record.payerView), kept: place)
  }
}

extension LockTable {
  /// Takes over the locks that another worker has left.
  func restore() {
    for left in kept.restore() {
      _ = try? objects.with(left.object, made: true) { (locks) throws(Errno) in
        var change = locks[left.style].change(to: left.lock)
        if change.removed.isEmpty {
          change.added = [left.lock]
        } else {
          change.keep(in: kept, on: left.object, left.style)
          kept.remove(left.lock.kept)
        }
        locks[left.style].make(change)
        for lock in change.removed {
          kept.remove(lock.kept)
          noteReleased(lock)
        }
        for lock in change.added { noteRestored(lock) }
      }
    }
  }
}

extension LockList.Change {
  /// Notes what comes; what goes is to be removed when all is done.
  mutating func keep(in kept: KeptLocks, on object: ObjectNumber, _ style: LockTable.Style) {
    for index in added.indices { added[index].kept = kept.add(added[index], on: object, style) }
  }
}

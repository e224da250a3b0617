// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing
@testable internal import Volume

/// Something open, for tests.
struct Numbered: KeptOpenItem {
  let number: Int
  var record: Int { number }
  init(number: Int) { self.number = number }
  init?(_ record: Int) {
    guard record >= 0 else { return nil }
    number = record
  }
}

/// What a worker leaves in shared memory, and what the next one makes of it.
struct KeptStateTests {
  @Test func recordsAreFoundAgain() throws {
    let memory = try SharedMemory("test", size: KeptRecords<UInt64>.size(10_000))
    var records = KeptRecords<UInt64>(memory.whole)
    for index in 0..<5000 { records.set(index, UInt64(index) &* 7) }
    for index in stride(from: 0, to: 5000, by: 3) { records.clear(index) }
    var next = KeptRecords<UInt64>(memory.whole)
    var found: [Int: UInt64] = [:]
    next.restore { found[$0] = $1 }
    #expect(found.count == (0..<5000).count { $0 % 3 != 0 })
    #expect(found.allSatisfy { $0.value == UInt64($0.key) &* 7 && $0.key % 3 != 0 })
  }

  /// One changed word changes no record: it is dropped, or is as it was.
  @Test func aDamagedRecordIsDropped() throws {
    let memory = try SharedMemory("test", size: KeptRecords<KeptLocks.Record>.size(64))
    var records = KeptRecords<KeptLocks.Record>(memory.whole)
    func record(_ number: Int) -> KeptLocks.Record {
      KeptLocks.Record(
        sequence: UInt64(number), inode: 5, device: 6, view: 1, owner: 7, handle: 8, first: 0, last: 9,
        pid: 1,
        payer: 2, payerView: 0, isFlock: 0, isWrite: 1)
    }
    for index in 0..<20 { records.set(index, record(index)) }
    let words = memory.base.assumingMemoryBound(to: UInt32.self)
    for word in 0..<(20 * 96 / 4) {
      let before = words[word]
      for value in [0, UInt32.max, before ^ 1 << (word % 32)] where value != before {
        words[word] = value
        // A check that is 0 says that there is none.
        var next = KeptRecords<KeptLocks.Record>(memory.whole)
        var found: [Int: KeptLocks.Record] = [:]
        next.restore { found[$0] = $1 }
        #expect(found.count >= 19)
        for (index, found) in found {
          #expect(found.sequence == UInt64(index) && found.inode == 5 && found.owner == 7 && found.last == 9)
        }
        words[word] = before
        for index in 0..<20 where found[index] == nil { records.set(index, record(index)) }
      }
    }
  }

  @Test func openItemsKeepTheirHandles() throws {
    let memory = try SharedMemory("test", size: KeptRecords<HandleTable<Numbered>.Kept>.size(10_000))
    let table = HandleTable<Numbered>(in: memory.whole)
    var handles = (0..<1000).map { table.add(Numbered(number: $0)) }
    for number in stride(from: 0, to: 1000, by: 4) {
      #expect(table.remove(handles[number])?.number == number)
      table.forget(handles[number])
    }
    // Removed, but the worker has died before all that follows from it was done.
    _ = table.remove(handles[1])
    let next = HandleTable<Numbered>(in: memory.whole, takingOver: true)
    #expect(next.count == 750)
    for number in 0..<1000 where number % 4 != 0 { #expect(try next.find(handles[number]).number == number) }
    // Nobody gets a handle that somebody had.
    for number in 0..<500 {
      let new = next.add(Numbered(number: number))
      #expect(!handles.contains(new))
      handles.append(new)
    }
    #expect(throws: Errno.EBADF) { _ = try next.find(handles[0]) }
  }

  @Test func nodesAndNamesAreFoundAgain() throws {
    let memory = try ViewMemory()
    var state = NodeTableState(in: memory)
    try state.beginAtRoot(.numbered(1, device: 1), -1, .top, .whole, capacity: 10)
    var names: [UInt64: String] = [:]
    var random = SeededRandom(seed: 5)
    for number in UInt64(100)..<20_000 {
      guard let index = state.make(.numbered(number, device: 1), directory: number % 7 == 0) else {
        throw Errno.ENOMEM
      }
      state.slab[index].pointee.lookups = 1
      let name = String(repeating: "n\(number)", count: Int.random(in: 1...40, using: &random)).prefix(255)
      try String(name).withName { state.remember($0, of: index) }
      names[number] = String(name)
    }
    for number in UInt64(100)..<20_000 where number % 3 == 0 {
      let index = try #require(state.find(.numbered(number, device: 1)))
      #expect(state.remove(index) == -1)
    }
    var next = NodeTableState(in: memory)
    try next.beginAtRoot(.numbered(1, device: 1), -1, .top, .whole, takingOver: true, capacity: 10)
    #expect(next.slab.count == state.slab.count)
    for number in UInt64(100)..<20_000 {
      let index = next.find(.numbered(number, device: 1))
      #expect((index == nil) == (number % 3 == 0))
      guard let index else { continue }
      let name = next.names.text(next.slab[index].pointee.name).map { String(decoding: $0, as: UTF8.self) }
      #expect(name == names[number])
    }
    // New ones take no place that is in use.
    let before = next.slab.count
    for number in UInt64(30_000)..<40_000 {
      guard let index = next.make(.numbered(number, device: 1), directory: false) else { throw Errno.ENOMEM }
      #expect(next.slab[index].pointee.inode == number)
    }
    #expect(next.slab.count == before + 10_000)
    for number in UInt64(100)..<20_000 where number % 3 != 0 {
      #expect(next.find(.numbered(number, device: 1)) != nil)
    }
  }

  /// Where a service manager has started the keeper again, what had that number is closed, and by chance the
  /// number is one of our own of the same object: whoever closed it for the node would close ours.
  @Test(arguments: [true, false])
  func descriptorsAreTakenOverWhereTheyAreKept(areKept: Bool) throws {
    let temporary = try TemporaryDirectory()
    let directory = try temporary.open()
    let identity = Identity(try directory.fd.status(), of: directory.fd)
    let memory = try ViewMemory()
    var state = NodeTableState(in: memory)
    try state.beginAtRoot(.numbered(1, device: 1), -1, .top, .whole, capacity: 10)
    guard let index = state.make(identity, directory: true) else { throw Errno.ENOMEM }
    state.slab[index].pointee.lookups = 1
    #expect(state.adopt(directory.fd.raw, for: index, capacity: 10) == -1)
    var next = NodeTableState(in: memory)
    try next.beginAtRoot(
      .numbered(1, device: 1), -1, .top, .whole, takingOver: true, keepsDescriptors: areKept, capacity: 10)
    #expect(next.find(identity) == index)
    #expect(next.slab[index].pointee.descriptor == (areKept ? directory.fd.raw : -1))
    #expect(next.descriptorsTakenOver == (areKept ? [directory.fd.raw] : []))
  }

  /// Whichever word of the nodes is damaged: no crash, and no node stands for another object, or has another
  /// place.
  @Test func aDamagedNodeStandsForNothingElse() throws {
    let memory = try ViewMemory()
    var state = NodeTableState(in: memory)
    try state.beginAtRoot(.numbered(1, device: 1), -1, .top, .whole, capacity: 10)
    let count = 60
    for number in 2...UInt64(count) + 1 {
      guard let index = state.make(.numbered(number, device: 1), directory: false) else { throw Errno.ENOMEM }
      state.slab[index].pointee.lookups = 1
      state.slab[index].pointee.zone = .inbox
      state.slab[index].pointee.position = .whole
      try "name of \(number), which is a long one".withName { state.remember($0, of: index) }
    }
    let regions = [
      (memory.nodes, (count + 2) * MemoryLayout<Node>.stride), (memory.names, (count * 2 + 2) * 32),
    ]
    for (region, size) in regions {
      let saved = Bytes(region.base, size)
      for word in 0..<size / 4 {
        let words = region.base.assumingMemoryBound(to: UInt32.self)
        for value in [0, UInt32.max, words[word] ^ 1 << (word % 32)] {
          words[word] = value
          var next = NodeTableState(in: memory)
          try next.beginAtRoot(
            .numbered(1000, device: 1), -1, .top, .whole, takingOver: true, capacity: 10)
          next.slab.forEach { index, node in
            guard index != 1 else { return }
            #expect(node.pointee.zone == .inbox && node.pointee.position == .whole)
            #expect((2...UInt64(count) + 1).contains(node.pointee.inode) && node.pointee.device == 1)
            _ = next.names.text(node.pointee.name)
          }
          // Without its root nothing is known any more.
          #expect(next.slab.count >= count || next.slab.count == 1)
          saved.restore()
        }
      }
    }
  }

  /// Whatever is being written when a worker dies: what it was about to change is known.
  @Test func anIntentIsNeverLost() throws {
    let memory = try SharedMemory("test", size: Intents.size)
    let request = RequestID(1 << 63 | 77)
    let intents = Intents(in: memory.whole, isKept: false, worker: 0)
    let before = Bytes(memory.base, Intents.size)
    let note = intents.begin(request, view: 1)
    let begun = Bytes(memory.base, Intents.size)
    intents.end(note)
    let done = Bytes(memory.base, Intents.size)
    #expect(Intents(in: memory.whole, isKept: true, worker: 1).left(by: request, view: 1)?.isDone == 1)
    // As far as it had come: each of the words that its end has changed may be missing.
    for word in begun.differences(from: done) {
      done.restore()
      begun.restore(word)
      #expect(Intents(in: memory.whole, isKept: true, worker: 1).left(by: request, view: 1) != nil)
    }
    before.restore()
    #expect(Intents(in: memory.whole, isKept: true, worker: 1).left(by: request, view: 1) == nil)
  }

  @Test func locksAreTakenOver() throws {
    let memory = try SharedMemory("test", size: KeptLocks.size)
    let budget = Budget(Budget.Limits(descriptors: 1 << 14))
    let table = LockTable(budget, kept: KeptLocks(in: memory.whole))
    let object = ObjectNumber(inode: 5, device: 6)
    func lock(_ owner: UInt64, _ first: Int64, _ last: Int64, _ kind: LockRange.Kind) -> HeldLock {
      HeldLock(
        holder: LockHolder(view: 1, owner: LockOwner(owner)), handle: HandleID(owner),
        range: LockRange(kind: kind, first: first, last: last, pid: 7))
    }
    _ = try table.set(lock(1, 0, 99, .write), on: object, .posix, parking: nil)
    _ = try table.set(lock(1, 40, 59, .none), on: object, .posix, parking: nil)
    _ = try table.set(lock(2, 200, 299, .read), on: object, .posix, parking: nil)
    _ = try table.set(lock(3, 250, 260, .read), on: object, .posix, parking: nil)
    _ = try table.set(lock(4, 0, .max, .write), on: object, .flock, parking: nil)
    table.releaseAll(of: LockHolder(view: 1, owner: LockOwner(3)), on: object, .posix)

    let next = LockTable(budget, kept: KeptLocks(in: memory.whole))
    next.restore()
    #expect(next.count == 4)
    func isFree(_ first: Int64, _ last: Int64, _ kind: LockRange.Kind = .write) -> Bool {
      let range = LockRange(kind: kind, first: first, last: last, pid: 0)
      return next.conflict(object, with: range, by: LockHolder(view: 2, owner: LockOwner(1))) == nil
    }
    #expect(!isFree(0, 39) && isFree(40, 59) && !isFree(60, 99) && isFree(100, 199))
    #expect(!isFree(255, 255) && isFree(255, 255, .read) && isFree(300, .max))
    #expect(throws: Errno.EAGAIN) {
      _ = try next.set(lock(9, 0, .max, .read), on: object, .flock, parking: nil)
    }
    // And they are given back as if they had been taken here, also for a third worker.
    next.releaseAll(of: LockHolder(view: 1, owner: LockOwner(1)), on: object, .posix)
    let third = LockTable(budget, kept: KeptLocks(in: memory.whole))
    third.restore()
    #expect(third.count == 2)
  }
}

/// Bytes as they were.
private struct Bytes {
  private let base: UnsafeMutableRawPointer
  private let bytes: [UInt8]
  init(_ base: UnsafeMutableRawPointer, _ size: Int) {
    self.base = base
    bytes = Array(UnsafeRawBufferPointer(start: base, count: size))
  }
  /// The words, of eight bytes, that are others in what was there later.
  func differences(from later: Bytes) -> [Int] {
    (0..<bytes.count / 8).filter { bytes[$0 * 8..<$0 * 8 + 8] != later.bytes[$0 * 8..<$0 * 8 + 8] }
  }
  func restore(_ word: Int) {
    for index in word * 8..<word * 8 + 8 {
      base.storeBytes(of: bytes[index], toByteOffset: index, as: UInt8.self)
    }
  }
  func restore() {
    bytes.withUnsafeBytes {
      base.copyMemory(from: $0.baseAddress ?? UnsafeRawPointer(base), byteCount: bytes.count)
    }
  }
}

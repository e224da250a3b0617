// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import Synchronization

// What outlives a process that serves.
//
//  1. The keeper (`Keeper.swift`) and the worker that serves have one table of descriptors. So whatever is
//     open stays open when the worker dies, under the number that it had: connections to the kernel, the
//     control socket, files. The next worker only has to know which is which, and that is noted here.
//  2. Tables that are needed again lie in shared memory, whose files are among those descriptors.
//  3. No lock lies in it: the locks of a worker die with it.
//  4. It may have been torn by a death at any instruction, or damaged. Each entry carries a check of its own,
//     and one that does not match is not there.

/// Descriptors by what they are for, for the next worker.
package final class KeptState: @unchecked Sendable {
  // Unchecked: entries are changed under `lock`; words of the header are written by one process at a time.

  /// What a descriptor is for.
  package enum Kind: UInt32, Sendable {
    /// A connection to the kernel, and the memory of the view that is served over it.
    case connection = 1, viewMemory
    /// The process that waits for an app, and what is to be known of the app.
    case appProcess, appLaunch
    /// The memory of what all views share.
    case volumeMemory
    /// The control socket.
    case listener
    /// Open when the first worker was started: not a worker's to close.
    case keepers
  }

  /// Changes with the layout of anything that is kept: a program that has another one can't take over.
  package static let layout: UInt32 = 2

  struct Header {
    var magic: UInt64 = Header.magic
    var layout: UInt32 = KeptState.layout
    /// Whether the worker serves, so that the next one must take over; before that nobody has come yet.
    var isServing: UInt32 = 0
    /// How many workers have been replaced, and what became of the last one (a wait status).
    var restarts: UInt32 = 0
    var lastStatus: Int32 = 0
    /// When the last one was found dead, by the monotonic clock.
    var diedAt: UInt64 = 0
    /// How long nobody has served after that, in nanoseconds.
    var lastPause: UInt64 = 0
    /// The worker that serves.
    var worker: Int32 = 0

    static let magic: UInt64 = 0x31_6c75_736e_6900
  }
  private struct Entry {
    var kind: UInt32 = 0
    var view: UInt32 = 0
    var descriptor: Int32 = -1
    var check: UInt32 = 0

    var sum: UInt32 {
      var sum = 0x9e37_79b1 &+ kind
      sum = (sum ^ view) &* 0x85eb_ca6b
      sum = (sum ^ UInt32(bitPattern: descriptor)) &* 0xc2b2_ae35
      return (sum ^ sum >> 15) | 1
    }
    var isSound: Bool { check != 0 && check == sum }
  }
  private static let firstEntry = 4096
  private static let capacity = 1 << 14

  private let memory: SharedMemory
  private let entries: UnsafeMutablePointer<Entry>
  private let header: UnsafeMutablePointer<Header>
  private let lock = Mutex(())
  /// Whether another worker has served before this one.
  package let hasPredecessor: Bool

  package init() throws(Errno) {
    let size = Self.firstEntry + Self.capacity * MemoryLayout<Entry>.stride
    memory = try SharedMemory("insula-kept", size: size)
    try memory.whole.makeRoom(0..<size)
    header = memory.base.bindMemory(to: Header.self, capacity: 1)
    header.initialize(to: Header())
    entries = (memory.base + Self.firstEntry).bindMemory(to: Entry.self, capacity: Self.capacity)
    hasPredecessor = false
  }

  /// The same memory in a process that has just been made for a worker.
  package init(inheriting other: KeptState) {
    memory = other.memory
    header = other.header
    entries = other.entries
    hasPredecessor = other.header.pointee.isServing != 0
  }

  // MARK: Descriptors

  /// Notes a descriptor for the next worker; it must be forgotten before it is closed.
  package func keep(_ fd: FD, as kind: Kind, view: UInt32 = 0) {
    lock.withLock { _ in
      guard let index = free else { return }
      var entry = Entry(kind: kind.rawValue, view: view, descriptor: fd.raw)
      entry.check = entry.sum
      (entries + index).pointee.check = 0
      atomicMemoryFence(ordering: .sequentiallyConsistent)
      (entries + index).pointee = entry
    }
  }

  package func forget(_ kind: Kind, view: UInt32 = 0) {
    lock.withLock { _ in
      for index in 0..<Self.capacity where entries[index].kind == kind.rawValue && entries[index].view == view
      {
        (entries + index).pointee = Entry()
      }
    }
  }

  package func descriptor(_ kind: Kind, view: UInt32 = 0) -> FD? {
    all.first { $0.kind == kind && $0.view == view }?.fd
  }

  /// The views that have a connection.
  package var views: [UInt32] { all.filter { $0.kind == .connection }.map(\.view).sorted() }

  /// All that are noted.
  package var all: [(kind: Kind, view: UInt32, fd: FD)] {
    lock.withLock { _ in
      (0..<Self.capacity).compactMap { index in
        let entry = entries[index]
        guard entry.isSound, let kind = Kind(rawValue: entry.kind) else { return nil }
        return (kind, entry.view, FD(entry.descriptor))
      }
    }
  }

  private var free: Int? { (0..<Self.capacity).first { !entries[$0].isSound } }

  /// Memory of a kind: what was kept, if it is of this size, or new.
  package func memory(
    _ kind: Kind, view: UInt32 = 0, name: String, sizes: [Int]
  ) throws(Errno) -> (memory: SharedMemory, isKept: Bool) {
    if let kept = descriptor(kind, view: view) {
      let size = (try? kept.status()).map { Int($0.st_size) } ?? 0
      if sizes.contains(size), let memory = try? SharedMemory(adopting: OwnedFD(owning: kept.raw)) {
        return (memory, true)
      }
      forget(kind, view: view)
    }
    var failure = Errno.ENOMEM
    for size in sizes {
      do throws(Errno) {
        let made = try SharedMemory(name, size: size)
        keep(made.fd, as: kind, view: view)
        return (made, false)
      } catch {
        failure = error
      }
    }
    throw failure
  }

  /// Forgets all that concerns a view.
  package func forgetAll(of view: UInt32) {
    for kind in [Kind.connection, .viewMemory, .appProcess, .appLaunch] { forget(kind, view: view) }
  }

  /// Notes data for the next worker, for as long as the result exists.
  package func keep(_ data: [UInt8], as kind: Kind, view: UInt32) throws(Errno) -> SharedMemory {
    let memory = try SharedMemory("insula-data", size: data.count + 16)
    try memory.whole.makeRoom(0..<memory.size)
    memory.base.storeBytes(of: Self.sum(data), as: UInt64.self)
    memory.base.storeBytes(of: UInt64(data.count), toByteOffset: 8, as: UInt64.self)
    data.withUnsafeBytes {
      UnsafeMutableRawBufferPointer(start: memory.base + 16, count: data.count).copyMemory(from: $0)
    }
    keep(memory.fd, as: kind, view: view)
    return memory
  }

  /// What another worker has noted, if nothing has damaged it.
  package func data(_ kind: Kind, view: UInt32) -> (bytes: [UInt8], memory: SharedMemory)? {
    guard let kept = descriptor(kind, view: view),
      let memory = try? SharedMemory(adopting: OwnedFD(owning: kept.raw)), memory.size > 16,
      memory.base.load(fromByteOffset: 8, as: UInt64.self) == UInt64(memory.size - 16)
    else { return nil }
    let bytes = Array(UnsafeRawBufferPointer(start: memory.base + 16, count: memory.size - 16))
    return memory.base.load(as: UInt64.self) == Self.sum(bytes) ? (bytes, memory) : nil
  }

  private static func sum(_ bytes: [UInt8]) -> UInt64 {
    bytes.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
  }

  // MARK: Workers

  package var status: (restarts: Int, lastStatus: Int32, lastPause: UInt64) {
    (Int(header.pointee.restarts), header.pointee.lastStatus, header.pointee.lastPause)
  }

  /// Counts the workers.
  package var worker: Int { Int(header.pointee.restarts) }

  /// The worker serves from here on.
  package func serves() {
    let died = header.pointee.diedAt
    if died != 0 { header.pointee.lastPause = monotonicNanoseconds() &- died }
    header.pointee.diedAt = 0
    header.pointee.isServing = 1
  }

  package var isServing: Bool { header.pointee.isServing != 0 }

  /// A worker has ended that should not have.
  package func died(_ status: Int32) {
    header.pointee.restarts &+= 1
    header.pointee.lastStatus = status
    // Who dies while it takes over has not ended the pause.
    if header.pointee.diedAt == 0 { header.pointee.diedAt = monotonicNanoseconds() }
  }
}

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
    /// The keeper's own: not a worker's to close, and of no use to another keeper.
    case keepers
    /// The store's lock.
    case storeLock
    /// The socket of the process that takes a user's mount away.
    case remover
    /// The socket of an app, through which it asks.
    case appListener
    /// What is to be known of a backup that is being made.
    case backup
    /// What is to be known of a files view.
    case files
    /// The root of a volume that has an engine, the socket by which that is told to end, and what is to be
    /// known of it.
    case volumeRoot, volumeLife, volumeEngine
    /// Refusals, and revocations of grants, that could not be recorded yet.
    case owedConsents, owedRevocations
  }

  /// How a keeper has answered who wants the installed program in place of the running one.
  package enum Answer: UInt32, Sendable {
    case none = 0
    /// The installed program can't take over: it can't be started, or keeps other things, or these otherwise.
    case unfit
    /// It could, but could not be put in place.
    case failed
    /// It takes over when a worker has ended that waits for a volume.
    case later
  }

  /// Why there is another worker.
  package enum Reason: Sendable, Equatable {
    /// A signal ended the last one.
    case signal(Int32)
    /// Somebody wanted the installed program.
    case wish
    /// The keeper ended, and with it the last worker.
    case keeperEnded

    /// Whether a worker has died that was to serve on.
    package var isDeath: Bool { if case .signal = self { true } else { false } }
  }

  struct Header {
    var magic: UInt64 = Header.magic
    /// Of anything that is kept: a program that has another one can't take over.
    var layout: UInt64
    /// Whether the worker serves, so that the next one must take over; before that nobody has come yet.
    ///
    /// Said twice, so that one damaged word does not end a mount in silence.
    var isServing: UInt32 = 0
    var isNotServing = Header.yes
    /// How many workers have been replaced, and why the last one was.
    var restarts: UInt32 = 0
    var lastSignal: Int32 = 0
    /// The last answer to a wish (``Answer``).
    var answer: UInt32 = 0
    /// How many changes of names are under way that no request has asked for.
    var ownChanges: UInt32 = 0
    /// When the last worker was found dead, by the monotonic clock.
    var diedAt: UInt64 = 0
    /// How long nobody has served after that, in nanoseconds.
    var lastPause: UInt64 = 0
    /// The device of the mount, and its complement: one that is damaged is none.
    var mountDevice: UInt64 = 0
    var mountDeviceCheck: UInt64 = 0
    /// Whether workers note which volumes were added on this machine; those of earlier versions leave it 0.
    var notesVolumes: UInt32 = 0

    static let magic: UInt64 = 0x31_6c75_736e_6900
    static let yes: UInt32 = 0x7965_7321
    // Beside the numbers of signals.
    static let wish: Int32 = 0
    static let keeperEnded: Int32 = -1
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
  let header: UnsafeMutablePointer<Header>
  let lock = Mutex(())
  /// This worker has seen the end of the mount.
  let hasSeenTheEnd = Atomic<Bool>(false)
  /// Whether another worker has served before this one.
  package let hasPredecessor: Bool
  /// Has the descriptors as well, for a keeper that is started when this one is gone.
  let store: DescriptorStore?
  /// Readable when there is an answer to a wish.
  let answered: SharedFD

  private static var size: Int { firstEntry + capacity * MemoryLayout<Entry>.stride }

  package init(layout: UInt64, store: DescriptorStore? = nil) throws(Errno) {
    memory = try SharedMemory("insula-kept", size: Self.size)
    try memory.whole.makeRoom(0..<Self.size)
    header = memory.base.bindMemory(to: Header.self, capacity: 1)
    header.initialize(to: Header(layout: layout))
    entries = (memory.base + Self.firstEntry).bindMemory(to: Entry.self, capacity: Self.capacity)
    hasPredecessor = false
    self.store = store
    answered = SharedFD(try eventDescriptor())
    store?.keep(memory.fd, as: DescriptorStore.table)
  }

  /// What another keeper has left; EINVAL if it is not of this layout, ENOENT if nothing was served any
  /// more.
  package init(adopting file: consuming OwnedFD, layout: UInt64, store: DescriptorStore? = nil) throws(Errno)
  {
    memory = try SharedMemory(adopting: file)
    guard memory.size == Self.size else { throw .EINVAL }
    header = memory.base.bindMemory(to: Header.self, capacity: 1)
    entries = (memory.base + Self.firstEntry).bindMemory(to: Entry.self, capacity: Self.capacity)
    hasPredecessor = false
    self.store = store
    answered = SharedFD(try eventDescriptor())
    guard header.pointee.magic == Header.magic, header.pointee.layout == layout else { throw .EINVAL }
    guard isServing else { throw .ENOENT }
    // Whatever was wished from another keeper.
    grantsWish()
  }

  /// The same memory in a process that has just been made for a worker.
  package init(inheriting other: KeptState) {
    memory = other.memory
    header = other.header
    entries = other.entries
    hasPredecessor = other.isServing
    store = other.store
    answered = other.answered
  }

  /// What another keeper needs to adopt it.
  package var fd: FD { memory.fd }

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
    if kind != .keepers { store?.keep(fd, as: Self.name(kind, view)) }
  }

  /// How a descriptor is called in the service manager's store.
  private static func name(_ kind: Kind, _ view: UInt32) -> String { "\(kind.name)-\(view)" }

  /// Whatever is noted has these numbers from now on; what has none is forgotten.
  package func renumber(_ numbers: [String: FD]) {
    lock.withLock { _ in
      for index in 0..<Self.capacity where entries[index].kind != 0 {
        var entry = entries[index]
        let kind = entry.isSound ? Kind(rawValue: entry.kind) : nil
        guard let kind, let fd = numbers[Self.name(kind, entry.view)] else {
          (entries + index).pointee = Entry()
          continue
        }
        entry.descriptor = fd.raw
        entry.check = entry.sum
        (entries + index).pointee = entry
      }
    }
  }

  package func forget(_ kind: Kind, view: UInt32 = 0) {
    lock.withLock { _ in
      for index in 0..<Self.capacity where entries[index].kind == kind.rawValue && entries[index].view == view
      {
        (entries + index).pointee = Entry()
      }
    }
    store?.forget(Self.name(kind, view))
  }

  package func descriptor(_ kind: Kind, view: UInt32 = 0) -> FD? {
    all.first { $0.kind == kind && $0.view == view }?.fd
  }

  /// The roots of volumes that programs serve, and by what those are told to end.
  package var volumes: [(root: FD, life: FD)] {
    let all = all
    return all.compactMap { entry in
      guard entry.kind == .volumeRoot else { return nil }
      return all.first { $0.kind == .volumeLife && $0.view == entry.view }.map { (entry.fd, $0.fd) }
    }
  }

  /// The views that have a connection.
  package var views: [UInt32] { all.filter { $0.kind == .connection }.map(\.view).inOrder(by: <) }

  /// All that are noted.
  package var all: [(kind: Kind, view: UInt32, fd: FD)] {
    lock.withLock { _ in
      (0..<Self.capacity).compactMap { index in
        let entry = entries[index]
        guard entry.isSound, let kind = Kind(rawValue: entry.kind),
          kind.fits(FD(entry.descriptor), besides: memory.fd)
        else { return nil }
        return (kind, entry.view, FD(entry.descriptor))
      }
    }
  }

  /// Whether a descriptor is noted, be it open or not.
  ///
  /// Without the lock, since one who holds it may close something; each entry says whether it is whole.
  func holds(_ descriptor: Int32) -> Bool {
    descriptor == memory.fd.raw || descriptor == answered.number
      || (0..<Self.capacity).contains { entries[$0].descriptor == descriptor && entries[$0].isSound }
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
    for kind in [Kind.connection, .viewMemory, .appProcess, .appLaunch, .appListener, .backup] {
      forget(kind, view: view)
    }
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
}

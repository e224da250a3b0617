// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Synchronization

/// What a request is about to change that can't be changed twice.
struct Intent: BitwiseCopyable {
  var request: UInt64
  var view: UInt32
  var isDone: UInt32 = 0
  /// What loses its name, or gets another one, 0 for what is only to be made; or the size that a file had.
  var inode: UInt64
  var device: UInt32
  /// By the clock that the kernel stamps files with, in nanoseconds.
  var began: Int64
}

// When a worker dies, the kernel sends again what it had not answered, and marks it as sent again. Most
// requests can simply be served again. A mkdir can't: it would find what it has made. So whoever changes
// names, or something else that can't be repeated, notes that before, and notes when it is done. What was
// begun only is looked for on the disk.
//
//  1. Each thread has two places of its own, which its next change takes over: the answer has been sent then.
//     One says what is begun, and the other that it is done. What is written just when the worker dies is
//     lost, so the first stays as it is.
//  2. What has been sent again is served before anything else (`WorkerPool`), so nobody can have come in
//     between.
//  3. The workers take turns in which part of the places they use: what another one has left stays until all
//     that was sent again has been served.

/// See the rules above.
final class Intents: Sendable {
  private static let parts = 8
  private static let threads = 128
  private static let placesInPart = threads * 2
  static var size: Int { KeptRecords<Intent>.size(parts * placesInPart) }

  private struct State {
    var records: KeptRecords<Intent>
    /// What other workers have left.
    var left: [(place: Int, intent: Intent)] = []
  }
  private let state: Mutex<State>
  private let first: Int
  /// Whether there will be another worker.
  let isOn: Bool
  private let hasLeft = Atomic<Bool>(false)

  /// `worker` counts the workers.
  init(in region: SharedRegion?, isKept: Bool, worker: Int) {
    var state = State(records: KeptRecords(region))
    if isKept {
      var left: [(Int, Intent)] = []
      state.records.restore { left.append(($0, $1)) }
      state.left = left
    }
    first = worker % Self.parts * Self.placesInPart
    isOn = region != nil
    hasLeft.store(!state.left.isEmpty, ordering: .relaxed)
    self.state = Mutex(state)
  }

  /// A change that has been noted.
  struct Note {
    fileprivate let place: Int
    fileprivate var intent: Intent
  }

  /// Notes a change that is about to be made; nil where it need not be, or can't.
  func begin(_ request: RequestID, view: UInt32, _ object: ObjectNumber? = nil) -> Note? {
    guard isOn, request.number != 0 else { return nil }
    let thread = Int(clx_thread_number())
    guard thread < Self.threads else { return nil }
    let note = Note(
      place: first + thread * 2,
      intent: Intent(
        request: request.number, view: view, inode: object?.inode ?? 0, device: object?.device ?? 0,
        began: Self.now))
    state.withLock { $0.records.set(note.place, note.intent) }
    return note
  }

  /// The change has been made.
  func end(_ note: Note?) {
    guard var note else { return }
    note.intent.isDone = 1
    state.withLock { $0.records.set(note.place + 1, note.intent) }
  }

  /// The change has not been made, or has been undone.
  func drop(_ note: Note?) {
    guard let note else { return }
    state.withLock { $0.records.clear(note.place) }
  }

  /// What another worker was about to change for a request that has been sent again.
  func left(by request: RequestID, view: UInt32) -> Intent? {
    guard request.isResent, hasLeft.load(ordering: .relaxed) else { return nil }
    return state.withLock { state in
      let found = state.left.map(\.intent).filter { $0.request == request.number && $0.view == view }
      // Whoever has served it again and died has noted it again; the first one may have made the change.
      guard var first = found.min(by: { $0.began < $1.began }) else { return nil }
      first.isDone = found.contains { $0.isDone != 0 } ? 1 : 0
      return first
    }
  }

  /// All that was sent again has been served.
  func forgetLeft() {
    state.withLock { state in
      for (place, _) in state.left where !(first..<first + Self.placesInPart).contains(place) {
        state.records.clear(place)
      }
      state.left = []
    }
    hasLeft.store(false, ordering: .relaxed)
  }

  private static var now: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME_COARSE, &time)
    return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
  }
}

extension Intent {
  var object: ObjectNumber { ObjectNumber(inode: inode, device: device) }

  /// Whether an object has come into being since.
  func precedes(_ object: FD) -> Bool {
    guard let time = (try? object.creationTime()) ?? (try? object.status().st_ctim) else { return false }
    return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec) >= began
  }
}

extension View {
  /// Makes a change that can't be made twice, noting it; `size` is that of the file before.
  func once<Result>(
    _ request: RequestID, size: Int64 = 0, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    let before = ObjectNumber(inode: UInt64(bitPattern: size), device: 0)
    let note = volume.intents.begin(request, view: number, before)
    do throws(Errno) {
      let result = try body()
      volume.intents.end(note)
      return result
    } catch {
      volume.intents.drop(note)
      throw error
    }
  }

  /// Whether another worker was about to make a change for a request that has been sent again.
  func hasLeft(_ request: RequestID) -> Bool { volume.intents.left(by: request, view: number) != nil }
}

extension FD {
  /// Whether these bytes are somewhere in the file from an offset on.
  func contains(_ bytes: UnsafeRawBufferPointer, from offset: Int64) throws(Errno) -> Bool {
    let length = Int64(try status().st_size) - offset
    // As much as a few clients can have written at once.
    guard length >= bytes.count, length <= 64 << 20, let wanted = bytes.baseAddress else { return false }
    let found = UnsafeMutableRawBufferPointer.allocate(byteCount: Int(length), alignment: 16)
    defer { found.deallocate() }
    // Who may only append to it can't look; then that it has grown must do.
    guard let reader = try? reopened(O_RDONLY) else { return true }
    var count = 0
    while count < found.count {
      let part = UnsafeMutableRawBufferPointer(rebasing: found[count...])
      let read = try reader.fd.read(into: part, at: offset + Int64(count))
      if read == 0 { break }
      count += read
    }
    return found.baseAddress.flatMap { clx_memmem($0, count, wanted, bytes.count) } != nil
  }
}

extension FD {
  /// How many of these bytes the file ends with, being the first of them, if a write of them was cut off.
  ///
  /// A signal that ends a process ends its write between two pages, so the file ends with a page then.
  /// `offset` is where it ended before.
  func beginning(of bytes: UnsafeRawBufferPointer, from offset: Int64) throws(Errno) -> Int {
    let size = Int64(try status().st_size)
    let most = min(size - offset, Int64(bytes.count) - 1)
    guard most > 0, size % 4096 == 0, let start = bytes.baseAddress, let reader = try? reopened(O_RDONLY)
    else { return 0 }
    let end = UnsafeMutableRawBufferPointer.allocate(byteCount: Int(most), alignment: 16)
    defer { end.deallocate() }
    guard try reader.fd.read(into: end, at: size - most) == end.count, let base = end.baseAddress else {
      return 0
    }
    return (1...end.count).last { memcmp(base + (end.count - $0), start, $0) == 0 } ?? 0
  }
}

// What another worker has done for the request that a change is for.
extension DirectoryChange {
  /// Whether it has made what has a name now.
  func hasAdded(_ name: Name) -> Bool {
    guard let left, let object = try? from.fd.child(name) else { return false }
    return left.isDone != 0 || left.precedes(object.fd)
  }

  /// Whether it has given an object a name.
  func hasLinked(_ object: ObjectNumber, as name: Name) -> Bool {
    left?.object == object && number(of: name, in: from) == object
  }

  /// Whether it has removed a name.
  func hasRemoved(_ name: Name) -> Bool { left.map { number(of: name, in: from) != $0.object } ?? false }

  /// Whether it has renamed an object.
  func hasRenamed(_ name: Name, to newName: Name) -> Bool {
    guard let left else { return false }
    return number(of: newName, in: to) == left.object && number(of: name, in: from) != left.object
  }

  private func number(of name: Name, in directory: Directory) -> ObjectNumber? {
    (try? directory.fd.status(of: name)).map { ObjectNumber($0) }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import Fuse
internal import Glibc
internal import LinuxIO
internal import Synchronization

/// What a request is about to change that can't be changed twice.
struct Intent: BitwiseCopyable {
  var request: UInt64
  var view: UInt32
  var isDone: UInt32 = 0
  /// What loses its name, or gets another one; 0 for what is only to be made.
  var inode: UInt64 = 0
  var device: UInt32 = 0
  /// When that was last changed, in nanoseconds; or the size that a file had.
  var before: Int64 = 0
  /// What has come of it, for the answer.
  var result: Int64 = 0
  /// By the monotonic clock.
  var began: UInt64
}

// When a worker dies, the kernel sends again what it had not answered, and marks it as sent again. Most
// requests can simply be served again. A mkdir can't: it would find what it has made. So whoever changes
// names, or something else that can't be repeated, notes that before, and notes when it is done. What was
// begun only is looked for on the disk. So that what is found there is known to be the request's own:
//
//  - It is noted only when nothing but the call itself can refuse it: what the gate has allowed once it is
//    not asked again, since the change may have taken the right away.
//  - What is to be added is noted only if it is not there, so that what was there before is not taken for it.
//    The names are locked from then on, so nobody else of this worker's adds it.
//
// And so that there is one place for each:
//
//  1. Each thread has two places of its own, which its next change takes over: the answer has been sent then.
//     One says what is begun, and the other that it is done. What is written just when the worker dies is
//     lost, so the first stays as it is.
//  2. What has been sent again is served before anything else (`WorkerPool`), so nobody can have come in
//     between. On a volume that a program serves others may: there it waits in a queue.
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
  /// How many requests that were sent again wait in queues, and one more until all have come.
  private let resent = Atomic<Int>(1)
  /// When this worker began, by the clock that the kernel stamps files with: what was made later, another
  /// worker has not made.
  private let start: Int64

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
    start = Self.now(CLOCK_REALTIME)
    // The stamps of files follow in steps of some milliseconds.
    if state.left.contains(where: { $0.intent.isDone == 0 }) {
      while Self.now(CLOCK_REALTIME_COARSE) <= start, Self.now(CLOCK_REALTIME) >= start { sched_yield() }
    }
    self.state = Mutex(state)
  }

  /// A change that has been noted.
  struct Note {
    fileprivate let place: Int
    fileprivate var intent: Intent
  }

  /// Notes a change that is about to be made; nil where it need not be, or can't.
  func begin(
    _ request: RequestID, view: UInt32, _ object: ObjectNumber? = nil, before: Int64 = 0
  ) -> Note? {
    guard isOn, request.number != 0 else { return nil }
    let thread = Int(clx_thread_number())
    guard thread < Self.threads else { return nil }
    let note = Note(
      place: first + thread * 2,
      intent: Intent(
        request: request.number, view: view, inode: object?.inode ?? 0, device: object?.device ?? 0,
        before: before, began: monotonicNanoseconds()))
    state.withLock { $0.records.set(note.place, note.intent) }
    return note
  }

  /// The change has been made.
  func end(_ note: Note?, result: Int = 0) {
    guard var note else { return }
    note.intent.isDone = 1
    note.intent.result = Int64(result)
    state.withLock { $0.records.set(note.place + 1, note.intent) }
    #if DEBUG
      Trap.at(.noted)
    #endif
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
      if let done = found.first(where: { $0.isDone != 0 }) { (first.isDone, first.result) = (1, done.result) }
      return first
    }
  }

  /// Whether this worker may have made an object, and no other one.
  func isNew(_ object: FD) -> Bool {
    guard let time = try? object.creationTime() else { return false }
    return time.nanoseconds > start
  }

  /// One more request that was sent again is to be served, or one less.
  func resentWait(by change: Int) {
    if resent.add(change, ordering: .acquiringAndReleasing).newValue == 0 { forgetLeft() }
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

  private static func now(_ clock: clockid_t) -> Int64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return time.nanoseconds
  }
}

extension timespec {
  var nanoseconds: Int64 { Int64(tv_sec) &* 1_000_000_000 &+ Int64(tv_nsec) }
}

extension Intent {
  var object: ObjectNumber { ObjectNumber(inode: inode, device: device) }
}

extension View {
  /// Makes a change that can't be made twice, noting it; `body` gives what is to be answered.
  ///
  /// Who calls this has asked the gate.
  @discardableResult
  func once(
    _ request: RequestID, size: Int64 = 0, _ body: () throws(Errno) -> Int
  ) throws(Errno) -> Int {
    let note = volume.intents.begin(request, view: number, before: size)
    do throws(Errno) {
      let result = try body()
      #if DEBUG
        Trap.at(.done)
      #endif
      volume.intents.end(note, result: result)
      return result
    } catch {
      volume.intents.drop(note)
      throw error
    }
  }

  /// What another worker was about to change for a request that has been sent again.
  func left(by request: RequestID) -> Intent? { volume.intents.left(by: request, view: number) }

  package func resentWait(by change: Int) { volume.intents.resentWait(by: change) }
  package func hasBegun(_ request: RequestID) -> Bool { left(by: request) != nil }
}

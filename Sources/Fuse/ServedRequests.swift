// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import LinuxIO
internal import Synchronization

// Which requests a worker was serving when it died.
//
//  1. The kernel sends a request again that a dead worker has not answered. If the request itself ends
//     workers, it would end each next one as well. So each thread notes the request that it serves in memory
//     that outlives the worker: two stores when it begins and one when it ends.
//  2. When a signal has ended a worker, the next one counts a death for each request in those notes: then the
//     request is a suspect. A restart on request counts nothing.
//  3. A request by which two workers died is answered with EIO by the third one, which does nothing else for
//     it but log it. If that ends a worker too, the next one does not even log it.
//  4. A request that is answered is no suspect any more, whichever thread answers it. A request that only
//     waits, for a lock or for a person, is not being served and not noted.
//  5. Requests that are sent again are served one after the other (`Session.resume`). For a suspect that
//     other threads serve, the session waits a moment. So the second death is charged to one request alone.

/// See the rules above.
package final class ServedRequests: @unchecked Sendable {
  // Unchecked: each thread writes to its own slot; the slots of suspects are changed under `state`.

  /// A request by the view that it came through and by the kernel's number.
  fileprivate struct Key: Hashable {
    let view: UInt32
    let number: UInt64
  }

  /// In a cache line of its own: threads that serve don't contend for one.
  fileprivate struct Slot {
    /// 0 where there is nothing.
    var number: UInt64 = 0
    /// The view, and a check of all.
    var tag: UInt64 = 0
    /// 0 in the slot of a thread.
    var deaths: UInt64 = 0
    var padding = InlineArray<5, UInt64>(repeating: 0)

    fileprivate init(_ key: Key, deaths: Int) {
      number = key.number
      self.deaths = UInt64(deaths)
      tag = Self.tag(key.number, key.view, self.deaths)
    }

    var key: Key { Key(view: UInt32(tag >> 32), number: number) }
    var isSound: Bool { number != 0 && tag == Self.tag(number, key.view, deaths) }

    @inline(__always)
    static func tag(_ number: UInt64, _ view: UInt32, _ deaths: UInt64) -> UInt64 {
      var sum = (number ^ 0x9e37_79b9_7f4a_7c15) &* 0xc2b2_ae3d_27d4_eb4f
      sum = (sum ^ sum >> 29 ^ UInt64(view) ^ deaths << 32) &* 0x9e37_79b9_7f4a_7c15
      return UInt64(view) << 32 | sum >> 32
    }
  }

  private struct Suspect {
    let deaths: Int
    /// Where it is noted.
    let place: Int
  }
  private struct State {
    /// The requests by which a worker has died.
    var suspects: [Key: Suspect] = [:]
    /// Whose each place is.
    var places = [Key?](repeating: nil, count: ServedRequests.suspectLimit)
    /// The place that is taken when all are in use.
    var next = 0
    /// Until when the sessions wait for suspects that other threads serve; nil before the first.
    var waitsUntil: UInt64?
  }

  /// As many as have numbers (`clx_thread_number`).
  fileprivate static let threads = 1024
  private static let suspectLimit = 512
  /// A request that has ended so many workers is not served again.
  private static let deathLimit = 2
  /// All sessions together wait for so long: a server that hangs must not keep the worker from serving.
  private static let waitNanoseconds: UInt64 = 500_000_000
  package static let size = (threads + suspectLimit) * MemoryLayout<Slot>.stride

  /// The threads' slots, then those of suspects; nil where there will be no other worker.
  fileprivate let slots: UnsafeMutablePointer<Slot>?
  /// Keeps the memory of the slots.
  private let region: SharedRegion?
  private let state = Condition(State())

  /// `isKept` says that another worker has left the region, and `hasDied` that a signal has ended that one.
  package init(in region: SharedRegion?, isKept: Bool, hasDied: Bool) {
    let usable = region.flatMap { region in
      region.size >= Self.size && (try? region.makeRoom(0..<Self.size)) != nil ? region : nil
    }
    self.region = usable
    slots = usable.map { $0.base.bindMemory(to: Slot.self, capacity: Self.threads + Self.suspectLimit) }
    if isKept { restore(countingDeaths: hasDied) }
  }

  private func restore(countingDeaths: Bool) {
    guard let slots else { return }
    state.withLock { state in
      for place in 0..<Self.suspectLimit {
        let slot = slots[Self.threads + place]
        guard slot.isSound, slot.deaths > 0, let deaths = Int(exactly: slot.deaths) else {
          slots[Self.threads + place].number = 0
          continue
        }
        state.suspects[slot.key] = Suspect(deaths: deaths, place: place)
        state.places[place] = slot.key
      }
      for thread in 0..<Self.threads where slots[thread].number != 0 {
        let slot = slots[thread]
        slots[thread] = Slot(Key(view: 0, number: 0), deaths: 0)
        if countingDeaths, slot.isSound, slot.deaths == 0 { countDeath(slot.key, &state) }
      }
    }
  }

  private func countDeath(_ key: Key, _ state: inout State) {
    let known = state.suspects[key]
    let place = known?.place ?? Self.takePlace(&state)
    let deaths = min(known?.deaths ?? 0, Self.deathLimit) + 1
    state.suspects[key] = Suspect(deaths: deaths, place: place)
    state.places[place] = key
    set(place, Slot(key, deaths: deaths))
  }

  /// A place for one more suspect, if need be that of another one.
  private static func takePlace(_ state: inout State) -> Int {
    if let free = state.places.firstIndex(of: nil) { return free }
    let place = state.next
    state.next = (place + 1) % suspectLimit
    if let other = state.places[place] { state.suspects[other] = nil }
    return place
  }

  /// A worker that dies meanwhile leaves the place empty.
  private func set(_ place: Int, _ slot: Slot) {
    guard let slots else { return }
    let target = slots + Self.threads + place
    target.pointee.number = 0
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    target.pointee.deaths = slot.deaths
    target.pointee.tag = slot.tag
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    target.pointee.number = slot.number
  }

  // MARK: Suspects

  /// What is to be done with a request.
  enum Verdict {
    case serve
    /// Two workers have died by it.
    case refuse
    /// And another one when it refused it.
    case refuseSilently
  }

  func verdict(on request: RequestID, of view: UInt32) -> Verdict {
    guard request.isResent, slots != nil else { return .serve }
    let deaths = state.withLock { $0.suspects[Key(view: view, number: request.number)]?.deaths ?? 0 }
    if deaths < Self.deathLimit { return .serve }
    return deaths == Self.deathLimit ? .refuse : .refuseSilently
  }

  /// Whether a worker has died by a request.
  func isSuspect(_ request: RequestID, of view: UInt32) -> Bool {
    guard request.isResent, slots != nil else { return false }
    return state.withLock { $0.suspects[Key(view: view, number: request.number)] != nil }
  }

  /// A request has been answered, so it ends no other worker.
  func answered(_ request: RequestID, of view: UInt32) {
    guard request.isResent, slots != nil else { return }
    let key = Key(view: view, number: request.number)
    state.change { state in forget(&state) { $0 == key } }
  }

  /// Waits until a suspect is answered, but not for long.
  func waitForAnswer(to request: RequestID, of view: UInt32) {
    let key = Key(view: view, number: request.number)
    let end = state.withLock { state in
      let end = state.waitsUntil ?? monotonicNanoseconds() &+ Self.waitNanoseconds
      state.waitsUntil = end
      return end
    }
    _ = state.wait(milliseconds: Int(millisecondsLeft(until: end))) { $0.suspects[key] == nil }
  }

  /// The kernel has sent again all that it still has of a view: who waited for others has given up.
  func forget(view: UInt32, besides sent: Set<UInt64>) {
    state.change { state in forget(&state) { $0.view == view && !sent.contains($0.number) } }
  }

  /// The connection of a view is new, or has ended: its requests are others', or nobody's.
  package func forget(view: UInt32) { forget(view: view, besides: []) }

  private func forget(_ state: inout State, where isMeant: (Key) -> Bool) {
    for (key, suspect) in state.suspects where isMeant(key) {
      state.suspects[key] = nil
      state.places[suspect.place] = nil
      slots?[Self.threads + suspect.place].number = 0
    }
  }

  /// By how many requests a worker has died that have not been answered.
  package var suspects: Int { state.withLock { $0.suspects.count } }
}

/// The slots of the threads, for the requests of one view; no references, so nothing is counted on the way.
struct ServedSlots {
  private let slots: UnsafeMutablePointer<ServedRequests.Slot>
  private let view: UInt32

  /// Nil where there will be no other worker.
  init?(_ place: ServedPlace?) {
    guard let place, let slots = place.requests.slots else { return nil }
    self.slots = slots
    view = place.view
  }

  /// This thread serves a request from here on; gives the place for ``end(_:)``.
  @inline(__always)
  func begin(_ request: RequestID) -> Int? {
    let thread = Int(clx_thread_number())
    // Within another request, that one counts.
    guard request.number != 0, thread < ServedRequests.threads, slots[thread].number == 0 else { return nil }
    slots[thread].tag = ServedRequests.Slot.tag(request.number, view, 0)
    slots[thread].number = request.number
    return thread
  }

  @inline(__always)
  func end(_ place: Int?) {
    if let place { slots[place].number = 0 }
  }
}

/// Where a session notes the requests that it serves.
package struct ServedPlace: Sendable {
  let requests: ServedRequests
  /// The view that is served.
  let view: UInt32

  package init(_ requests: ServedRequests, view: UInt32) {
    self.requests = requests
    self.view = view
  }
}

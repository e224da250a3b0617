// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Synchronization

/// A name in a directory under which something is that has a seal.
final class SealedPlace: Sendable {
  /// From the root of the tree on.
  let path: String
  private let state: Mutex<State>

  /// Reads what a seal says from the directory that is sealed.
  typealias Loading = @Sendable (FD) throws(Finding) -> any SealedContents

  private struct State {
    var loading: Loading
    /// Whether what is to be here is here; not so while the daemon itself changes that.
    var isSettled: Bool
    /// The seals of what has been seen here, which is more than one thing only while it is being replaced.
    var seen: [ObjectNumber: WeakSeal] = [:]
  }

  init(_ path: String, isSettled: Bool, loading: @escaping Loading) {
    self.path = path
    state = Mutex(State(loading: loading, isSettled: isSettled))
  }

  var isSettled: Bool { state.withLock { $0.isSettled } }

  /// The seal of the directory that was found here.
  func seal(of root: ObjectNumber, in places: SealedPlaces) -> ServedSeal {
    state.withLock { state in
      if let known = state.seen[root]?.seal { return known }
      state.seen = state.seen.filter { $0.value.seal != nil }
      let made = ServedSeal(path, in: places, load: state.loading)
      state.seen[root] = WeakSeal(made)
      return made
    }
  }

  /// What is here is about to be something else: one of two things, for a while.
  func begin(loading: @escaping Loading) {
    state.withLock { state in
      state.loading = loading
      state.isSettled = false
    }
  }

  /// From here on only `root` is what is here; nil if it went.
  func settle(_ root: ObjectNumber?, loading: Loading?) {
    state.withLock { state in
      if let loading { state.loading = loading }
      state.isSettled = root != nil
      for (number, seal) in state.seen where number != root { seal.seal?.retire() }
      state.seen = state.seen.filter { $0.key == root }
    }
  }
}

/// Where in the tree things are that have a seal; names do not tell.
///
/// Filled from the registry, and changed whenever the daemon installs, updates or removes something. It is
/// asked for names in directories that hold apps only, so it costs nothing elsewhere.
package final class SealedPlaces: Sendable {
  private struct Key: Hashable {
    let directory: ObjectNumber
    let name: [UInt8]
  }
  private struct State {
    var places: [Key: SealedPlace] = [:]
    /// How many there are below each directory.
    var holders: [ObjectNumber: Int] = [:]
    /// The directories above each place.
    var above: [Key: [ObjectNumber]] = [:]
  }
  private let state = Mutex(State())
  private let count = Atomic<Int>(0)
  private let refused = Atomic<UInt64>(0)
  private let say: @Sendable (String) -> Void

  /// `say` gets a line for each thing that is found to be other than it was sealed.
  init(say: @escaping @Sendable (String) -> Void) { self.say = say }

  func tell(_ line: String) { say(line) }

  /// How often something was refused because it is not what was sealed.
  var refusals: UInt64 { refused.load(ordering: .relaxed) }

  func noteRefusal() { refused.wrappingAdd(1, ordering: .relaxed) }

  func find(_ name: Name, in directory: ObjectNumber) -> SealedPlace? {
    guard count.load(ordering: .acquiring) > 0 else { return nil }
    let key = Key(directory: directory, name: Array(name.buffer))
    return state.withLock { $0.places[key] }
  }

  /// Whether something that has a seal is anywhere below a directory.
  func isAbove(_ directory: ObjectNumber) -> Bool {
    guard count.load(ordering: .acquiring) > 0 else { return false }
    return state.withLock { $0.holders[directory] ?? 0 > 0 }
  }

  /// Notes a place; `above` are the directories on the way to it, the last of which it is in.
  func add(_ place: SealedPlace, _ name: [UInt8], above: [ObjectNumber]) {
    guard let directory = above.last else { return }
    let key = Key(directory: directory, name: name)
    state.withLock { state in
      if state.places.updateValue(place, forKey: key) == nil {
        state.above[key] = above
        for holder in above { state.holders[holder, default: 0] += 1 }
      }
      count.store(state.places.count, ordering: .releasing)
    }
  }

  func remove(_ name: [UInt8], in directory: ObjectNumber) {
    let key = Key(directory: directory, name: name)
    state.withLock { state in
      guard state.places.removeValue(forKey: key) != nil else { return }
      for holder in state.above.removeValue(forKey: key) ?? [] {
        let left = (state.holders[holder] ?? 1) - 1
        state.holders[holder] = left > 0 ? left : nil
      }
      count.store(state.places.count, ordering: .releasing)
    }
  }

  func find(_ name: [UInt8], in directory: ObjectNumber) -> SealedPlace? {
    state.withLock { $0.places[Key(directory: directory, name: name)] }
  }
}

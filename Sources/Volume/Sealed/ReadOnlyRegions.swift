// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Synchronization

/// A read-only region: a name in a directory, and the seal of what is there.
final class ReadOnlyRegion: Sendable {
  /// From the root of the tree on.
  let path: String
  private let state: OrderedMutex<State>

  /// Reads what a seal says from the directory that is sealed.
  typealias Loading = @Sendable (FD) throws(Finding) -> any SealedContents

  private struct State {
    var loading: Loading
    /// Whether the region has its final contents; false while the daemon changes them.
    var isStable: Bool
    /// The seals of the objects that were seen here: more than one only while the region is being replaced.
    var seen: [ObjectNumber: WeakSeal] = [:]
  }

  init(_ path: String, isStable: Bool, loading: @escaping Loading) {
    self.path = path
    state = OrderedMutex(.readOnlyRegion, State(loading: loading, isStable: isStable))
  }

  var isStable: Bool { state.withLock { $0.isStable } }

  /// The seal of the directory that was found here.
  func seal(of root: ObjectNumber, in regions: ReadOnlyRegions) -> ServedSeal {
    state.withLock { state in
      if let known = state.seen[root]?.seal { return known }
      state.seen = state.seen.filter { $0.value.seal != nil }
      let made = ServedSeal(path, in: regions, load: state.loading)
      state.seen[root] = WeakSeal(made)
      return made
    }
  }

  /// The region is about to be replaced; for a while it may be the old or the new one.
  func beginChange(loading: @escaping Loading) {
    state.withLock { state in
      state.loading = loading
      state.isStable = false
    }
  }

  /// From here on only `root` is what is here; nil if it went.
  func endChange(_ root: ObjectNumber?, loading: Loading?) {
    state.withLock { state in
      if let loading { state.loading = loading }
      state.isStable = root != nil
      for (number, seal) in state.seen where number != root { seal.seal?.retire() }
      state.seen = state.seen.filter { $0.key == root }
    }
  }
}

/// The read-only regions of the tree, which names alone do not tell.
///
/// Filled from the registry, and changed whenever the daemon installs, updates or removes something. It is
/// consulted only for names in directories of apps, so it costs nothing elsewhere.
package final class ReadOnlyRegions: Sendable {
  private struct Key: Hashable {
    let directory: ObjectNumber
    let name: [UInt8]
  }
  private struct State {
    var regions: [Key: ReadOnlyRegion] = [:]
    /// How many there are below each directory.
    var counts: [ObjectNumber: Int] = [:]
    /// The directories above each place.
    var above: [Key: [ObjectNumber]] = [:]

    mutating func remove(_ key: Key) {
      guard regions.removeValue(forKey: key) != nil else { return }
      for holder in above.removeValue(forKey: key) ?? [] {
        let left = (counts[holder] ?? 1) - 1
        counts[holder] = left > 0 ? left : nil
      }
    }
  }
  private let state = OrderedMutex(.leaf, State())
  private let count = Atomic<Int>(0)
  private let refused = Atomic<UInt64>(0)
  /// Stands for each app where nobody knows which there are.
  private let unknown = OrderedMutex<ReadOnlyRegion?>(.leaf, nil)
  private let areUnknown = Atomic<Bool>(false)
  /// The same for homes in which nobody has noted yet which apps there are.
  private struct Unnoted {
    var homes = 0
    var region: ReadOnlyRegion?
    /// The directories of apps in which all were noted.
    var noted: Set<ObjectNumber> = []
  }
  private let unnoted = OrderedMutex(.leaf, Unnoted())
  private let areSomeUnnoted = Atomic<Bool>(false)
  private let say: @Sendable (String) -> Void

  /// `say` gets a line for each thing that is found to be other than it was sealed.
  init(say: @escaping @Sendable (String) -> Void) { self.say = say }

  func tell(_ line: String) { say(line) }

  /// How often something was refused because it is not what was sealed.
  var refusals: UInt64 { refused.load(ordering: .relaxed) }

  func noteRefusal() { refused.wrappingAdd(1, ordering: .relaxed) }

  func find(_ name: Name, in directory: ObjectNumber) -> ReadOnlyRegion? {
    guard count.load(ordering: .acquiring) > 0 else { return nil }
    let key = Key(directory: directory, name: Array(name.buffer))
    return state.withLock { $0.regions[key] }
  }

  /// What stands for any app in a directory of that zone; nil where apps are known, or can't be.
  func unknownApp(in directory: ObjectNumber, _ zone: Zone) -> ReadOnlyRegion? {
    if areUnknown.load(ordering: .acquiring), zone.app != nil { return unknown.withLock { $0 } }
    guard areSomeUnnoted.load(ordering: .acquiring), zone == .homeApplications else { return nil }
    return unnoted.withLock { $0.noted.contains(directory) ? nil : $0.region }
  }

  /// From here on, `region` stands for each app in homes, but for directories that were noted.
  func beginNoting(_ region: ReadOnlyRegion) {
    unnoted.withLock { unnoted in
      unnoted.homes += 1
      if unnoted.region == nil { unnoted.region = region }
      areSomeUnnoted.store(true, ordering: .releasing)
    }
  }

  /// Those in one more home were noted; nil if it has no directory for them.
  func endNoting(_ directory: ObjectNumber?) {
    let region = unnoted.withLock { unnoted in
      let region = unnoted.region
      if let directory { unnoted.noted.insert(directory) }
      unnoted.homes -= 1
      if unnoted.homes == 0 { unnoted = Unnoted() }
      areSomeUnnoted.store(unnoted.homes > 0, ordering: .releasing)
      return region
    }
    region?.endChange(nil, loading: nil)
  }

  /// From here on, `region` stands for each app.
  func letAppsBe(_ region: ReadOnlyRegion) {
    unknown.withLock { $0 = region }
    areUnknown.store(true, ordering: .releasing)
  }

  /// Whether something that has a seal is, or may be, anywhere below a directory.
  func isAbove(_ directory: ObjectNumber) -> Bool {
    if areUnknown.load(ordering: .acquiring) || areSomeUnnoted.load(ordering: .acquiring) { return true }
    guard count.load(ordering: .acquiring) > 0 else { return false }
    return state.withLock { $0.counts[directory] ?? 0 > 0 }
  }

  /// Notes a place; `above` are the directories on the way to it, the last of which it is in.
  func add(_ region: ReadOnlyRegion, _ name: [UInt8], above: [ObjectNumber]) {
    guard let directory = above.last else { return }
    let key = Key(directory: directory, name: name)
    state.withLock { state in
      if state.regions.updateValue(region, forKey: key) == nil {
        state.above[key] = above
        for holder in above { state.counts[holder, default: 0] += 1 }
      }
      count.store(state.regions.count, ordering: .releasing)
    }
  }

  func remove(_ name: [UInt8], in directory: ObjectNumber) {
    let key = Key(directory: directory, name: name)
    state.withLock { state in
      state.remove(key)
      count.store(state.regions.count, ordering: .releasing)
    }
  }

  /// Forgets all that are anywhere below a directory that is no part of the tree any more: what is found
  /// there next, or on the next disk with the same numbers, is something else.
  func removeAll(below directory: ObjectNumber) {
    state.withLock { state in
      for (key, above) in state.above where above.contains(directory) { state.remove(key) }
      count.store(state.regions.count, ordering: .releasing)
    }
  }

  func find(_ name: [UInt8], in directory: ObjectNumber) -> ReadOnlyRegion? {
    state.withLock { $0.regions[Key(directory: directory, name: name)] }
  }
}

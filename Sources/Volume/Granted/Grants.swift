// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization

// What users have granted to their apps, and where it is now.
//
//  1. A grant follows its object. If the object or a directory above it is renamed through any view, the
//     grant has its new path before the rename is answered. In between, the old path never leads to another
//     object.
//  2. If the object is replaced or removed, the grant stays with the name, because most programs save files
//     that way.
//  3. A rename looks up its two names in their directories. If nothing is granted there, that reads two
//     counters, so whoever works elsewhere does not wait for those who move what is granted.
//  4. The lock `moving` serializes renames of names that lead to a grant, grants, revocations, and the start
//     of a view. Its holder may wait for the filesystem, and nothing but these operations waits for it.
//     `state` is taken inside it, for a few memory accesses.
//  5. A rename checks again when it is done, since a grant may have been made meanwhile.
//  6. The cost of a rename grows with the length of the changed paths, plus a little for each affected grant.
//     The paths of these grants are not walked: what is below the new name is what was below the old one.
//  7. The number of names on the paths of a user's grants is limited (`Budget.Kind.grantedNames`). So every
//     scope has room for all of them, and no user can use up another user's room.

/// The holder of a grant: one app of one user.
///
/// The grant is in all views of that app.
struct GrantHolder: Hashable, Sendable {
  let identifier: String
  let user: UInt32

  init(_ identifier: AppIdentifier, _ user: UInt32) {
    self.identifier = identifier.text
    self.user = user
  }
}

/// See the rules above.
final class Grants: Sendable {
  /// The name that a file had before it was given another one in the same directory.
  struct PreviousName {
    let path: [[UInt8]]
    let step: ResolvedPath.Step
    /// Whether it was its app that renamed it.
    let isByHolder: Bool
  }

  struct Entry {
    var record: GrantRecord
    var steps: [ResolvedPath.Step] = []
    var previousName: PreviousName?
    var holder: GrantHolder { GrantHolder(record.identifier, record.user) }
  }

  /// A name on the way to what was granted.
  private struct Step {
    var ids: Set<Int64> = []
    /// How many of them each user has granted.
    var users: [UInt32: Int] = [:]
  }

  private struct Holding: Sendable {
    let holder: GrantHolder
    let view: PeerView
  }

  private struct State {
    var entries: [Int64: Entry] = [:]
    /// Which grants are reached through a name.
    var steps: [ResolvedPath.Step: Step] = [:]
    var previousNames: [ResolvedPath.Step: Set<Int64>] = [:]
    var ids: [GrantHolder: Set<Int64>] = [:]
    /// By their numbers.
    var views: [UInt32: Holding] = [:]
  }

  private let state = OrderedMutex(.grants, State())
  private let budget: Budget
  private let count = Atomic<Int>(0)
  /// In which directories the names of `steps` and `previousNames` are.
  private let directories = DirectoryCounts()
  let moving = OrderedMutex(.grantMoves, ())
  private let listener = OrderedMutex<(@Sendable ([Int64]) -> Void)?>(.leaf, nil)

  init(_ budget: Budget) { self.budget = budget }

  var isEmpty: Bool { count.load(ordering: .sequentiallyConsistent) == 0 }

  /// Whether a grant may depend on a name in a directory; reads two counters.
  func mayTouch(_ directory: ObjectNumber) -> Bool { count(in: directory) != 0 }

  /// How many names of grants are in a directory, at most.
  func count(in directory: ObjectNumber) -> UInt32 { isEmpty ? 0 : directories.count(in: directory) }

  /// Whether a grant depends on a name; where nothing is granted no lock is taken.
  func touches(_ name: Name, in directory: ObjectNumber) -> Bool {
    mayTouch(directory) && touches(ResolvedPath.Step(Array(name.buffer), in: directory))
  }

  /// The same of a name that is taken apart already.
  func touches(_ step: ResolvedPath.Step) -> Bool {
    state.withLock { $0.steps[step] != nil || $0.previousNames[step] != nil }
  }

  /// Whether something that was granted lies in this directory, or is reached through it.
  func touches(_ directory: ObjectNumber) -> [Int64] {
    if isEmpty { return [] }
    return state.withLock { state in
      Set(state.steps.filter { $0.key.directory == directory }.flatMap(\.value.ids)).sorted()
    }
  }

  func ids(through step: ResolvedPath.Step) -> [Int64] {
    state.withLock { $0.steps[step]?.ids ?? [] }.sorted()
  }

  func previousNames(at step: ResolvedPath.Step) -> [Int64] {
    state.withLock { $0.previousNames[step] ?? [] }.sorted()
  }

  func entry(_ id: Int64) -> Entry? { state.withLock { $0.entries[id] } }

  var all: [GrantRecord] {
    state.withLock { state in state.entries.values.map(\.record).sorted { $0.id < $1.id } }
  }

  func records(of holder: GrantHolder) -> [GrantRecord] {
    state.withLock { state in
      (state.ids[holder] ?? []).sorted().compactMap { state.entries[$0]?.record }
    }
  }

  /// EDQUOT if there would be too many names on the way to what its user has granted.
  func checkRoom(for entry: Entry) throws(Errno) {
    let user = entry.record.user
    let new = state.withLock { state in entry.steps.count { state.steps[$0]?.users[user] == nil } }
    try budget.check(.grantedNames, new, by: Payer(user: user))
  }

  /// Notes a grant, or what has become of it.
  func put(_ entry: Entry) {
    state.withLock { state in
      let id = entry.record.id
      let known = state.entries[id]
      let keeping = keepCounts(of: known?.steps[...] ?? [], known?.previousName)
      defer { end(keeping) }
      forget(id, &state)
      state.entries[id] = entry
      state.ids[entry.holder, default: []].insert(id)
      for step in entry.steps { add(id, entry.record.user, to: step, &state) }
      if let previousName = entry.previousName { add(id, previousName, &state) }
      count.store(state.entries.count, ordering: .sequentiallyConsistent)
    }
  }

  /// Notes where a grant is that was moved: so many of its first steps are others now.
  func move(_ entry: Entry, steps old: Int, to new: [ResolvedPath.Step]) {
    state.withLock { state in
      let id = entry.record.id
      guard let known = state.entries[id] else { return }
      let keeping = keepCounts(of: known.steps.prefix(old), known.previousName)
      defer { end(keeping) }
      forgetPreviousName(known, &state)
      for step in known.steps.prefix(old) { remove(id, known.record.user, from: step, &state) }
      var entry = entry
      entry.steps = new + known.steps.dropFirst(old)
      state.entries[id] = entry
      for step in new { add(id, entry.record.user, to: step, &state) }
      if let previousName = entry.previousName { add(id, previousName, &state) }
    }
  }

  @discardableResult
  func remove(_ id: Int64) -> Entry? {
    state.withLock { state in
      let removed = forget(id, &state)
      count.store(state.entries.count, ordering: .sequentiallyConsistent)
      return removed
    }
  }

  /// While an entry is taken out and put in again, whoever reads only the counts must not find it gone.
  private func keepCounts(
    of steps: ArraySlice<ResolvedPath.Step>, _ previous: PreviousName?
  ) -> [ObjectNumber] {
    let kept = steps.map(\.directory) + (previous.map { [$0.step.directory] } ?? [])
    for directory in kept { directories.add(directory) }
    return kept
  }

  private func end(_ keeping: [ObjectNumber]) { for directory in keeping { directories.remove(directory) } }

  @discardableResult
  private func forget(_ id: Int64, _ state: inout State) -> Entry? {
    guard let known = state.entries.removeValue(forKey: id) else { return nil }
    for step in known.steps { remove(id, known.record.user, from: step, &state) }
    forgetPreviousName(known, &state)
    state.ids[known.holder]?.remove(id)
    if state.ids[known.holder]?.isEmpty == true { state.ids[known.holder] = nil }
    return known
  }

  private func add(_ id: Int64, _ previous: PreviousName, _ state: inout State) {
    guard state.previousNames[previous.step, default: []].insert(id).inserted else { return }
    directories.add(previous.step.directory)
  }

  private func forgetPreviousName(_ known: Entry, _ state: inout State) {
    guard let step = known.previousName?.step,
      state.previousNames[step]?.remove(known.record.id) != nil
    else { return }
    directories.remove(step.directory)
    if state.previousNames[step]?.isEmpty == true { state.previousNames[step] = nil }
  }

  private func add(_ id: Int64, _ user: UInt32, to step: ResolvedPath.Step, _ state: inout State) {
    guard state.steps[step, default: Step()].ids.insert(id).inserted else { return }
    directories.add(step.directory)
    let count = state.steps[step, default: Step()].users[user, default: 0]
    state.steps[step]?.users[user] = count + 1
    if count == 0 { budget.charge(.grantedNames, to: Payer(user: user)) }
  }

  private func remove(_ id: Int64, _ user: UInt32, from step: ResolvedPath.Step, _ state: inout State) {
    guard state.steps[step]?.ids.remove(id) != nil else { return }
    directories.remove(step.directory)
    let count = state.steps[step]?.users[user] ?? 1
    state.steps[step]?.users[user] = count == 1 ? nil : count - 1
    if count == 1 { budget.give(.grantedNames, by: Payer(user: user)) }
    if state.steps[step]?.ids.isEmpty == true { state.steps[step] = nil }
  }

  // MARK: Views

  func add(_ view: PeerView, of holder: GrantHolder) {
    state.withLock { $0.views[view.number] = Holding(holder: holder, view: view) }
  }

  /// The view of that number has ended.
  func remove(view number: UInt32) { state.withLock { $0.views[number] = nil } }

  func views(of holder: GrantHolder) -> [PeerView] {
    state.withLock { state in state.views.values.filter { $0.holder == holder }.map(\.view) }
  }

  func holder(ofView number: UInt32) -> GrantHolder? { state.withLock { $0.views[number]?.holder } }

  // MARK: Those who keep them

  /// Sets the listener that gets the numbers of grants that were changed or removed by changes of names.
  func tell(_ listener: @escaping @Sendable ([Int64]) -> Void) {
    self.listener.withLock { $0 = listener }
  }

  func report(_ changed: [Int64]) {
    if changed.isEmpty { return }
    let listener = listener.withLock { $0 }
    listener?(changed)
  }
}

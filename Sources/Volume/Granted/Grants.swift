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
//  3. Whoever renames says before which two names they change (`NamesUnderWay`), makes the call, and then
//     looks whether something is granted there. If not, that reads two counters.
//  4. No lock is held while the filesystem works: a rename may wait for a file that somebody holds, and a
//     look along a path for a disk, as long as they like. The locks `moving`, one for each user, are held
//     while the paths of grants and the scopes of views change together, and while a view begins: for memory
//     accesses alone. `state` is taken inside them.
//  5. What a look along a path has found is noted only if no name on the way is being changed, and none was
//     since the look began. Who began to change one is asked for in the same moment in which the grant is
//     noted, and who begins later finds the grant. A path that can't be known is none: the grant gives
//     nothing there, and its user's thread looks again when the change is over (`GrantLooks`).
//  6. The cost of a rename grows with the length of the changed paths, plus a little for each affected grant.
//     The paths of these grants are not walked: what is below the new name is what was below the old one.
//     That is one place in a tree of names (`GrantedNames`), which is moved.
//  7. The number of names on the paths of a user's grants is limited (`Budget.Kind.grantedNames`). So every
//     scope has room for all of them, and no user can use up another user's room.

/// The holder of a grant: one team's app of one user.
///
/// The grant is in all views of that app, and in no others: an app of another team, or of the same team under
/// another root, may have the same identifier and run for the same user.
struct GrantHolder: Hashable, Sendable {
  /// What apps of several teams may have in common.
  struct Name: Hashable, Sendable {
    let identifier: String
    let user: UInt32

    init(_ identifier: AppIdentifier, _ user: UInt32) {
      self.identifier = identifier.text
      self.user = user
    }
  }

  let name: Name
  let team: Team

  init(_ identifier: AppIdentifier, _ user: UInt32, _ team: Team) {
    name = Name(identifier, user)
    self.team = team
  }

  init(_ record: GrantRecord) { self.init(record.identifier, record.user, record.team) }
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
    /// The names on its path as far as they were found.
    var steps: [ResolvedPath.Step] = []
    var previousName: PreviousName?
    var holder: GrantHolder { GrantHolder(record) }
  }

  /// An entry whose path is its place among the names.
  struct Placed {
    var record: GrantRecord
    var place: GrantedNames.Place
    var previousName: PreviousName?
    /// Its part of its holder's version.
    var mark: UInt64 = 0
    var holder: GrantHolder { GrantHolder(record) }
  }

  struct Holding: Sendable {
    let holder: GrantHolder
    let view: PeerView
  }

  struct State {
    var names: GrantedNames
    var entries: [Int64: Placed] = [:]
    var previousNames: [ResolvedPath.Step: Set<Int64>] = [:]
    var ids: [GrantHolder: SortedNumbers] = [:]
    /// The sum of the marks of each holder's grants; see `Grants+Versions.swift`.
    var versions: [GrantHolder: UInt64] = [:]
    /// By their numbers.
    var views: [UInt32: Holding] = [:]
  }

  let state: OrderedMutex<State>
  private let budget: Budget
  private let count = Atomic<Int>(0)
  /// Through which directories the grants lead, by their names and by their previous names.
  private let directories: DirectoryCounts
  /// Which names somebody changes; see rule 5.
  ///
  /// It is taken inside `state`, and by every rename: so it is never held for longer than a path is read.
  let changes = OrderedMutex(.leaf, NamesUnderWay())
  let moving = GrantMoves()
  let looks = GrantLooks()
  /// How many changes of names have ended, for those who wait for one.
  let changed = Condition(0)
  private let listener = OrderedMutex<Listener?>(.leaf, nil)
  /// How many records were put together for those who read them; tests count that.
  let recordsRead = Atomic<Int>(0)

  init(_ budget: Budget) {
    let directories = DirectoryCounts()
    self.budget = budget
    self.directories = directories
    state = OrderedMutex(.grants, State(names: GrantedNames(directories, budget)))
  }

  var isEmpty: Bool { count.load(ordering: .sequentiallyConsistent) == 0 }

  /// Whether a grant may depend on a name in a directory; reads two counters.
  func mayTouch(_ directory: ObjectNumber) -> Bool { count(in: directory) != 0 }

  /// How many grants lead through a directory, at most.
  func count(in directory: ObjectNumber) -> UInt32 { isEmpty ? 0 : directories.count(in: directory) }

  /// Whether a grant depends on a name; where nothing is granted no lock is taken.
  func touches(_ step: ResolvedPath.Step) -> Bool {
    mayTouch(step.directory) && state.withLock { $0.names.has(step) || $0.previousNames[step] != nil }
  }

  /// What was granted in this directory, or is reached through it.
  func touches(_ directory: ObjectNumber) -> [Int64] {
    if isEmpty { return [] }
    return state.withLock { state in Self.ids(in: state.names.places(in: directory), state.names) }
  }

  /// Whose grants depend on some names, also by the names that they had before.
  func users(at steps: [ResolvedPath.Step]) -> Set<UInt32> {
    state.withLock { state in
      steps.reduce(into: []) { users, step in
        for place in state.names.places(of: step) { users.formUnion(place.users.keys) }
        for id in state.previousNames[step] ?? [] {
          if let user = state.entries[id]?.record.user { users.insert(user) }
        }
      }
    }
  }

  /// Whose lead through a directory.
  func users(in directory: ObjectNumber) -> Set<UInt32> {
    guard mayTouch(directory) else { return [] }
    return state.withLock { state in
      state.names.places(in: directory).reduce(into: []) { $0.formUnion($1.users.keys) }
    }
  }

  /// Whose some are.
  func users(of ids: some Sequence<Int64>) -> Set<UInt32> {
    let users = ids.compactMap { id in state.withLock { $0.entries[id]?.record.user } }
    return Set(users)
  }

  func users(ofEach ids: some Sequence<Int64>) -> [UInt32: [Int64]] {
    state.withLock { state in
      var users: [UInt32: [Int64]] = [:]
      for id in ids {
        if let user = state.entries[id]?.record.user { users[user, default: []].append(id) }
      }
      return users
    }
  }

  func ids(through step: ResolvedPath.Step) -> [Int64] {
    state.withLock { state in Self.ids(in: state.names.places(of: step), state.names) }
  }

  private static func ids(in places: [GrantedNames.Place], _ names: GrantedNames) -> [Int64] {
    Set(places.flatMap { names.grants(in: $0).map(\.id) }).inOrder(by: <)
  }

  func previousNames(at step: ResolvedPath.Step) -> [Int64] {
    state.withLock { $0.previousNames[step] ?? [] }.inOrder(by: <)
  }

  func entry(_ id: Int64) -> Entry? { state.withLock { state in state.entry(id) } }

  func record(_ id: Int64) -> GrantRecord? { records([id]).first }

  /// The numbers of all; the records of many users are large.
  var numbers: [Int64] { state.withLock { Array($0.entries.keys) } }

  /// What the apps of all teams were granted under exactly this path that have that name.
  func records(of name: GrantHolder.Name, at path: [[UInt8]]) -> [GrantRecord] {
    state.withLock { state in
      let ids = state.names.place(at: path)?.ids ?? []
      return ids.filter { state.entries[$0]?.holder.name == name }.inOrder(by: <).compactMap {
        state.record($0)
      }
    }
  }

  /// What an app was granted under exactly this path.
  func record(of holder: GrantHolder, at path: [[UInt8]]) -> GrantRecord? {
    records(of: holder.name, at: path).first { $0.team == holder.team }
  }

  /// EDQUOT if there would be too many names on the way to what its user has granted.
  func checkRoom(for entry: Entry) throws(Errno) {
    let user = entry.record.user
    let new = state.withLock { state in state.names.countNew(entry.record.path, of: user) }
    try budget.check(.grantedNames, new, by: Payer(user: user))
  }

  /// Whether there may be so many more.
  func hasRoom(for names: Int, _ user: UInt32) -> Bool {
    (try? budget.check(.grantedNames, names, by: Payer(user: user))) != nil
  }

  /// Notes what has become of a grant, unless it was revoked meanwhile.
  func update(_ entry: Entry) { put(entry, isNew: false) }

  /// Notes a grant, or what has become of it.
  func put(_ entry: Entry, isNew: Bool = true) {
    state.withLock { state in
      guard isNew || state.entries[entry.record.id] != nil else { return }
      put(entry, &state)
    }
  }

  func put(_ entry: Entry, _ state: inout State) {
    let id = entry.record.id
    let known = state.entry(id)
    let keeping = keepCounts(of: known?.steps ?? [], known?.previousName)
    defer { end(keeping) }
    // To its app it is what it was.
    let isSame =
      known?.record.path == entry.record.path && known?.record.isWritable == entry.record.isWritable
    let mark = isSame ? state.entries[id]?.mark : nil
    forget(id, &state)
    hold(entry, mark, &state)
    publishCount(state)
  }

  @discardableResult
  func remove(_ id: Int64) -> Entry? {
    state.withLock { state in
      let removed = forget(id, &state)
      publishCount(state)
      return removed
    }
  }

  /// Only when a change is complete, for the same reason as in `keepCounts`.
  func publishCount(_ state: borrowing State) {
    count.store(state.entries.count, ordering: .sequentiallyConsistent)
  }

  /// While an entry is taken out and put in again, whoever reads only the counts must not find it gone.
  func keepCounts(of steps: [ResolvedPath.Step], _ previous: PreviousName?) -> [ObjectNumber] {
    let kept = steps.map(\.directory) + (previous.map { [$0.step.directory] } ?? [])
    for directory in kept { directories.change(directory, by: 1) }
    return kept
  }

  /// Has those who change some names from now on find that something may be granted there.
  ///
  /// Whether somebody changes one already is asked for afterwards.
  func announce(_ steps: [ResolvedPath.Step]) -> [ObjectNumber] {
    count.wrappingAdd(1, ordering: .sequentiallyConsistent)
    return keepCounts(of: steps, nil)
  }

  func end(announced: [ObjectNumber], _ state: borrowing State) {
    end(announced)
    publishCount(state)
  }

  func end(_ keeping: [ObjectNumber]) {
    for directory in keeping { directories.change(directory, by: -1) }
  }

  /// Puts an entry in, with a mark that is known already or else with the one of its record.
  func hold(_ entry: Entry, _ mark: UInt64?, _ state: inout State) {
    let id = entry.record.id
    let place = state.names.insert(id, of: entry.record.user, at: entry.record.path, entry.steps)
    var placed = Placed(record: entry.record, place: place)
    placed.record.path = []
    placed.mark = mark ?? Self.mark(of: entry.record)
    state.entries[id] = placed
    state.ids[entry.holder, default: SortedNumbers()].insert(id)
    state.versions[entry.holder, default: 0] &+= placed.mark
    note(entry.previousName, of: id, &state)
  }

  @discardableResult
  func forget(_ id: Int64, _ state: inout State) -> Entry? {
    guard let known = state.entry(id), let placed = state.entries[id] else { return nil }
    note(nil, of: id, &state)
    state.entries[id] = nil
    state.names.remove(id, of: known.record.user, at: placed.place)
    state.ids[known.holder]?.remove(id)
    state.versions[known.holder, default: 0] &-= placed.mark
    if state.ids[known.holder]?.isEmpty != false {
      state.ids[known.holder] = nil
      state.versions[known.holder] = nil
    }
    return known
  }

  /// Sets the name that a grant had before.
  func note(_ previousName: PreviousName?, of id: Int64, _ state: inout State) {
    let old = state.entries[id]?.previousName?.step
    guard old != nil || previousName != nil else { return }
    state.entries[id]?.previousName = previousName
    if let new = previousName?.step, state.previousNames[new, default: []].insert(id).inserted {
      directories.change(new.directory, by: 1)
    }
    guard let old, old != previousName?.step, state.previousNames[old]?.remove(id) != nil else { return }
    directories.change(old.directory, by: -1)
    if state.previousNames[old]?.isEmpty == true { state.previousNames[old] = nil }
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

  /// The views of all apps.
  var views: [PeerView] { state.withLock { $0.views.values.map(\.view) } }

  /// The view of an app by its number.
  func view(_ number: UInt32) -> PeerView? { state.withLock { $0.views[number]?.view } }

  func holder(ofView number: UInt32) -> GrantHolder? { state.withLock { $0.views[number]?.holder } }

  // MARK: Those who keep them

  /// Gets the numbers of grants that were changed or removed by changes of names, and whose they are.
  typealias Listener = @Sendable (_ numbers: [Int64], _ apps: [GrantedApp]) -> Void

  func tell(_ listener: @escaping Listener) {
    self.listener.withLock { $0 = listener }
  }

  /// Where two grants of an app became one, that one is among those that were changed: so its app is told.
  func report(_ changed: [Int64]) {
    if changed.isEmpty { return }
    guard let listener = listener.withLock({ $0 }) else { return }
    listener(changed, apps(of: changed))
  }
}

extension Grants.State {
  func record(_ id: Int64) -> GrantRecord? {
    guard let placed = entries[id] else { return nil }
    var record = placed.record
    record.path = names.path(of: placed.place)
    return record
  }

  func entry(_ id: Int64) -> Grants.Entry? {
    guard let placed = entries[id], let record = record(id) else { return nil }
    return Grants.Entry(
      record: record, steps: names.steps(to: placed.place), previousName: placed.previousName)
  }
}

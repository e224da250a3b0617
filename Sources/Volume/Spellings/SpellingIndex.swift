// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Synchronization

/// The names in directories of a store that ignores case, to be found in any spelling.
///
///  1. A directory comes in when a name is first missed there, with one reading of it. After that
///     ``ChangeEffects`` tells of each change of its names. What changes them otherwise is noticed by the
///     directory's time of modification.
///  2. It is read while nobody holds its names. What is changed meanwhile is noted, and counts more than
///     what was read (``begin(_:changed:)``).
///  3. All directories together have so much memory. Who needs more gives up what they have not used for
///     the longest time: whichever user has most, so that nobody loses by what another one does.
final class SpellingIndex: Sendable {
  enum Answer {
    /// The directory's names are not known.
    case unknown
    /// There is no such name in any spelling, and whether there is room for one more.
    case free(hasRoom: Bool)
    /// It is there as it was asked for.
    case same
    case other([UInt8])
  }

  /// What has been changed in a directory since somebody began to read it.
  fileprivate struct Reading {
    let number: UInt64
    var changes: [(name: [UInt8], isThere: Bool)] = []
    var lastChanged: (time: Int64, isOwn: Bool)?
    /// Those who wait for the end.
    var waiting: [PostponedRequest] = []
  }

  fileprivate struct State {
    private var directories: [ObjectNumber: DirectoryNames] = [:]
    /// The directory that was last asked for, which is mostly the next one as well.
    private var last: (number: ObjectNumber, names: Unmanaged<DirectoryNames>)?
    var readings: [ObjectNumber: Reading] = [:]
    var weights: [UInt32: Int] = [:]
    var weight = 0
    var clock: UInt64 = 0
    /// Requests that can't be answered before a large directory is read.
    var wanting: Set<UInt64> = []
    /// Those that have waited, and may take their time.
    var turns: Set<UInt64> = []
    var absences = Absences()
  }
  private let state = OrderedMutex(.leaf, State())
  private let limit: Int
  let retries = RenameRetries()
  /// As many changes are noted while a directory is read; with more it is read again when it is next needed.
  private static let mostChanges = 4096

  init(bytes limit: Int) { self.limit = limit }

  /// What one directory may take: more names are not let in.
  var directoryLimit: Int { limit / 2 }

  /// Whether names are found here, and not one by one in a directory that was changed in some other way.
  func spelling(
    of name: NameKey, in directory: ObjectNumber, changed: Int64
  ) -> Answer {
    state.withLock { state in
      state.clock &+= 1
      let now = state.clock
      let answer = state.with(directory) { names -> Answer in
        guard names.areUpToDate(changed), !names.areTooMany else { return .unknown }
        names.lastUse = now
        return switch names.find(name) {
        case .same: .same
        case .other(let spelling): .other(spelling)
        case nil: .free(hasRoom: names.weight < directoryLimit)
        }
      }
      return answer ?? .unknown
    }
  }

  // MARK: Reading

  /// Notes from here on what is changed in a directory, and gives a number for that; nil if it is known, or
  /// somebody is reading it.
  func begin(_ directory: ObjectNumber, changed: Int64) -> UInt64? {
    state.withLock { state -> UInt64? in
      if state.with(directory, { $0.areUpToDate(changed) }) == true || state.readings[directory] != nil {
        return nil
      }
      state.forget(directory)
      state.clock &+= 1
      state.readings[directory] = Reading(number: state.clock)
      return state.clock
    }
  }

  /// Takes in what was read, if it was; those who have waited are served again.
  func end(_ reading: UInt64, of directory: ObjectNumber, _ names: DirectoryNames?) {
    let waiting = state.withLock { state -> [PostponedRequest] in
      guard let noted = state.readings[directory], noted.number == reading else { return [] }
      state.readings[directory] = nil
      take(in: names, directory, noted, &state)
      return noted.waiting
    }
    for request in waiting { request.serveAgain() }
  }

  private func take(
    in names: DirectoryNames?, _ directory: ObjectNumber, _ noted: Reading, _ state: inout State
  ) {
    guard noted.changes.count < Self.mostChanges, var names else { return }
    for change in noted.changes {
      change.name.withUnsafeBufferPointer { bytes in
        guard let name = NameKey(bytes) else { return }
        if change.isThere { names.insert(name) } else { names.remove(name) }
      }
    }
    if names.weight > directoryLimit { names = .tooMany(changed: names.changed, user: names.user) }
    state.clock &+= 1
    names.lastUse = state.clock
    state.add(names, directory)
    if let last = noted.lastChanged { (names.changed, names.isOwn) = last }
    while state.weight > limit { state.makeRoom() }
  }

  /// Whether a directory need not be read: its names are known, or they are too many.
  func knows(_ directory: ObjectNumber, changed: Int64) -> Bool {
    state.withLock { $0.with(directory) { $0.areUpToDate(changed) } == true }
  }

  // MARK: Changes

  /// Names in a directory have been changed, at that time; whether a kernel may know another spelling of what
  /// was added as missing.
  @discardableResult func note(
    removed: Name?, added: Name?, in directory: ObjectNumber, changed: Int64, isOwn: Bool = false
  ) -> Bool {
    state.withLock { state in
      if !state.readings.isEmpty, let reading = state.readings[directory] {
        state.readings[directory]?.lastChanged = (changed, isOwn)
        for (name, isThere) in [(removed, false), (added, true)] {
          guard let name, reading.changes.count < Self.mostChanges else { continue }
          state.readings[directory]?.changes.append((Array(name.buffer), isThere))
        }
      }
      let addedKey = added.flatMap { NameKey($0.buffer) }
      let weighed = state.with(directory) { names -> (isStale: Bool, uncounted: Int) in
        // There may be room for the others now.
        if removed != nil, names.areTooMany { return (true, 0) }
        if let key = removed.flatMap({ NameKey($0.buffer) }) { names.remove(key) }
        if let addedKey { names.insert(addedKey) }
        names.changed = changed
        names.isOwn = isOwn
        return (false, names.uncounted)
      }
      if let weighed {
        if weighed.isStale { state.forget(directory) }
        if weighed.uncounted != 0 { state.count(directory) }
        while state.weight > limit { state.makeRoom() }
      }
      return addedKey.map { state.absences.end($0, in: directory, at: coarseSeconds()) } ?? false
    }
  }

  /// The same of what we have just changed.
  @discardableResult func note(
    removed: Name? = nil, added: Name? = nil, in directory: ChangedDirectory
  ) -> Bool {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME_COARSE, &now)
    return note(
      removed: removed, added: added, in: directory.number, changed: now.nanoseconds, isOwn: true)
  }

  /// Whether a kernel may keep that a name is missing, of which whoever holds the names is about to tell it.
  ///
  /// `changed` is for who does not know yet whether it is missing: then it must be known here.
  func noteMissing(_ name: NameKey, in directory: ObjectNumber, changed: Int64? = nil) -> Bool {
    state.withLock { state in
      if let changed {
        state.clock &+= 1
        let (now, limit) = (state.clock, directoryLimit)
        let isMissing = state.with(directory) { names in
          names.lastUse = now
          // Who adds a name that is known to be missing is not asked whether there is room.
          return names.areUpToDate(changed) && !names.areTooMany && names.weight < limit
            && names.find(name) == nil
        }
        guard isMissing == true else { return false }
      }
      return state.absences.note(name, in: directory, at: coarseSeconds())
    }
  }

  /// A directory has been given another time of modification, and has the same names.
  func noteTimes(of directory: ObjectNumber, _ before: Int64, _ after: Int64) {
    if before != after, knows(directory, changed: before) {
      note(removed: nil, added: nil, in: directory, changed: after)
    }
  }

  /// What is in a directory has changed, nobody says how; or it is gone.
  func forget(_ directory: ObjectNumber) {
    let waiting = state.withLock { state -> [PostponedRequest] in
      state.forget(directory)
      if state.readings.isEmpty { return [] }
      // Whoever reads it does so in vain.
      return state.readings.removeValue(forKey: directory)?.waiting ?? []
    }
    for request in waiting { request.serveAgain() }
  }

  // MARK: Waiting

  /// A request can't be answered before a directory is read.
  func want(_ request: RequestID) { _ = state.withLock { $0.wanting.insert(request.number) } }

  /// Whether it was that which a request has failed for.
  func wants(_ request: RequestID) -> Bool {
    state.withLock { $0.wanting.remove(request.number) != nil }
  }

  /// A request that has waited is served again in its user's turn, so it may read a directory itself.
  func giveTurn(to request: RequestID) {
    state.withLock { state in
      // Of those that needed it no more.
      if state.turns.count > 1024 { state.turns = [] }
      state.turns.insert(request.number)
    }
  }

  func takeTurn(of request: RequestID) -> Bool {
    state.withLock { $0.turns.remove(request.number) != nil }
  }

  /// Has a request wait for whoever reads a directory; false if nobody does.
  func wait(_ request: PostponedRequest, for directory: ObjectNumber) -> Bool {
    state.withLock { state in
      guard state.readings[directory] != nil else { return false }
      state.readings[directory]?.waiting.append(request)
      return true
    }
  }

  /// How many directories are known, and how much they take.
  var size: (directories: Int, weight: Int) { state.withLock { ($0.count, $0.weight) } }
}

extension SpellingIndex.State {
  fileprivate var count: Int { directories.count }

  /// Lets `body` use what is known of a directory, which stays known meanwhile.
  @inline(__always)
  fileprivate mutating func with<Result>(
    _ directory: ObjectNumber, _ body: (DirectoryNames) -> Result
  ) -> Result? {
    if last?.number != directory {
      guard let names = directories[directory] else { return nil }
      last = (directory, .passUnretained(names))
    }
    return last?.names._withUnsafeGuaranteedRef(body)
  }

  fileprivate mutating func add(_ names: DirectoryNames, _ directory: ObjectNumber) {
    forget(directory)
    directories[directory] = names
    names.counted = names.weight
    weigh(names.user, names.counted)
  }

  /// Counts what a directory takes more or less than was counted.
  fileprivate mutating func count(_ directory: ObjectNumber) {
    guard let names = directories[directory] else { return }
    let difference = names.weight - names.counted
    names.counted += difference
    weigh(names.user, difference)
  }

  private mutating func weigh(_ user: UInt32, _ difference: Int) {
    weight += difference
    weights[user, default: 0] += difference
  }

  fileprivate mutating func forget(_ directory: ObjectNumber) {
    if last?.number == directory { last = nil }
    guard let names = directories.removeValue(forKey: directory) else { return }
    weigh(names.user, -names.counted)
    if weights[names.user] == 0 { weights[names.user] = nil }
  }

  /// Has the user who takes most give up a quarter of it.
  fileprivate mutating func makeRoom() {
    guard let (user, all) = weights.max(by: { $0.value < $1.value }) else {
      weight = 0
      return
    }
    let oldest = directories.filter { $0.value.user == user }.map { ($0.key, $0.value.lastUse) }
      .inOrder { $0.1 < $1.1 }
    for (directory, _) in oldest {
      forget(directory)
      if weights[user, default: 0] <= all / 4 * 3 { break }
    }
    if oldest.isEmpty { weights[user] = nil }
  }
}

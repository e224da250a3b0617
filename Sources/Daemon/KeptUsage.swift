// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Apps
package import LinuxIO
package import Policy
package import Store

/// What places of apps were found to take, so that it is told at once.
///
/// Nothing tells when files change: file operations must not pay for this. So a place that is quickly walked
/// through is walked through whenever somebody asks, and of a large one what was found last is told, with the
/// time, and it is looked at again later.
package final class KeptUsage: Sendable {
  /// Walks through a place; `pause` is called for each name, and ends it by throwing EINTR.
  package typealias Walk =
    @Sendable (StoragePlace, _ pause: () throws(Errno) -> Void) throws(Errno) ->
    StorageUsage

  private struct Kept {
    let place: StoragePlace
    let measured: MeasuredUsage
    /// For how long it was walked through, and when that was over.
    let cost: UInt64
    let ended: UInt64
    /// Whether we have changed it since.
    var isPast = false
  }

  private struct State {
    var kept: [String: Kept] = [:]
    /// How many are kept of each user; of nil, what is there for all.
    var counts: [UInt32?: Int] = [:]
    /// What another daemon has left, of places that nobody has asked about yet.
    ///
    /// A mount does not wait for it to be read.
    lazy var remembered = Dictionary(read().places.map { ($0.key, $0) }) { first, _ in first }
    private let read: @Sendable () -> RememberedUsage
    /// Whether something was found that another daemon has not left.
    var hasNews = false
    /// To be looked at again, by their keys.
    var wanted: [String: StoragePlace] = [:]

    init(_ read: @escaping @Sendable () -> RememberedUsage) { self.read = read }

    /// Keeps it, if there is room.
    @discardableResult
    mutating func keep(_ new: Kept) -> Kept {
      let (key, user) = (new.place.key, new.place.owner.user)
      if kept[key] == nil {
        guard kept.count < KeptUsage.most.all, counts[user, default: 0] < KeptUsage.most.ofUser else {
          return new
        }
        counts[user, default: 0] += 1
      }
      kept[key] = new
      return new
    }
  }

  private let state: Condition<State>
  private let walk: Walk
  private let clock: @Sendable () -> UInt64

  /// Of more places nothing is kept: of all, and of one user.
  fileprivate static let most = (all: 4000, ofUser: 1000)
  /// What was found within that time is told again, in nanoseconds.
  private static let rest: UInt64 = 30_000_000_000
  /// How often a place is walked through again, as the share of the time that goes into that.
  private static let share: UInt64 = 20

  package init(
    _ remembered: @autoclosure @escaping @Sendable () -> RememberedUsage = RememberedUsage(),
    clock: @escaping @Sendable () -> UInt64 = monotonicNanoseconds, walk: @escaping Walk
  ) {
    state = Condition(State(remembered))
    self.clock = clock
    self.walk = walk
  }

  /// What a place takes: found out now, if that takes no longer than `allowance`, or nothing is known of it.
  ///
  /// The allowance, in nanoseconds, becomes less by what was used of it.
  package func usage(
    of place: StoragePlace, allowance: inout UInt64, pause: () throws(Errno) -> Void
  ) throws(Errno) -> MeasuredUsage {
    let began = clock()
    guard let known = known(of: place), !known.isPast else { return try measure(place, pause) }
    let left = allowance
    if known.cost <= left {
      defer { allowance -= min(allowance, clock() &- began) }
      var names = 0
      let found = try? measure(place) { () throws(Errno) in
        try pause()
        names &+= 1
        // It may have grown since.
        if names % 256 == 0, clock() &- began > left { throw .EINTR }
      }
      if let found { return found }
    }
    if clock() &- known.ended > max(Self.rest, known.cost &* Self.share) { want(place) }
    return known.measured
  }

  private func known(of place: StoragePlace) -> Kept? {
    state.withLock { state in
      if let kept = state.kept[place.key] { return kept }
      guard let left = state.remembered.removeValue(forKey: place.key) else { return nil }
      // It was found before this machine was started, perhaps: it is looked at as soon as may be.
      return state.keep(Kept(place: place, measured: left.measured, cost: left.cost, ended: 0))
    }
  }

  /// Whether there is something that the next daemon does not know yet.
  package var hasNews: Bool { state.withLock { $0.hasNews } }

  /// What is known now, for the next daemon.
  package var remembered: RememberedUsage {
    state.withLock { state in
      RememberedUsage(
        state.kept.filter { !$0.value.isPast }.map {
          RememberedUsage.Place(key: $0.key, measured: $0.value.measured, cost: $0.value.cost)
        } + state.remembered.values)
    }
  }

  /// Walks through a place, and keeps what is found.
  @discardableResult
  package func measure(
    _ place: StoragePlace, _ pause: () throws(Errno) -> Void
  ) throws(Errno) -> MeasuredUsage {
    let began = clock()
    let usage = try walk(place, pause)
    let measured = MeasuredUsage(usage, time: wallMilliseconds() / 1000)
    let ended = clock()
    state.withLock { state in
      state.wanted[place.key] = nil
      state.remembered[place.key] = nil
      state.hasNews = true
      state.keep(Kept(place: place, measured: measured, cost: ended &- began, ended: ended))
    }
    return measured
  }

  /// What a purge would free of all places that are known, save those of apps that run.
  package func purgeable(_ runs: (AppIdentifier, UInt32) -> Bool) -> Int64 {
    let kept = state.withLock { state in
      state.kept.values.filter { $0.place.app != nil || $0.place.removed != nil }
    }
    return kept.reduce(0) { sum, kept in
      if kept.place.removed != nil { return sum.adding(clamped: kept.measured.usage.purgeable.bytes) }
      guard let app = kept.place.app, let user = kept.place.owner.user, !runs(app, user) else { return sum }
      return sum.adding(clamped: kept.measured.usage.purgeable.bytes)
    }
  }

  /// Something was removed of what an app has: what is known of it is not told any more.
  package func changed(_ app: AppIdentifier, of user: UInt32) {
    state.withLock { state in
      for (key, kept) in state.kept
      where kept.place.owner.user == user && kept.place.app?.isSame(as: app) == true {
        state.kept[key]?.isPast = true
      }
    }
  }

  /// Forgets all places but these.
  package func keepOnly(_ places: [StoragePlace]) {
    let keys = Set(places.map(\.key))
    state.withLock { state in
      state.kept = state.kept.filter { keys.contains($0.key) }
      state.counts = Dictionary(state.kept.values.map { ($0.place.owner.user, 1) }, uniquingKeysWith: +)
      state.wanted = state.wanted.filter { keys.contains($0.key) }
      state.remembered = state.remembered.filter { keys.contains($0.key) }
    }
  }

  // MARK: What is looked at again

  private func want(_ place: StoragePlace) {
    state.change { state in if state.wanted.count < Self.most.all { state.wanted[place.key] = place } }
  }

  /// A place that is to be looked at again.
  package func nextWanted() -> StoragePlace? {
    state.withLock { state in state.wanted.popFirst()?.value }
  }

  /// Has whoever waits look around, also one who is just about to wait.
  package func wake() { state.change { _ in } }

  /// Waits until there is something to do; for some time at most.
  package func wait(milliseconds: Int, orUntil isReached: () -> Bool) {
    _ = state.wait(milliseconds: milliseconds) { !$0.wanted.isEmpty || isReached() }
  }
}

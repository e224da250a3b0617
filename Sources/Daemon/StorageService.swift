// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization

/// Tells how much room apps take, and how much there is for them.
final class StorageService: Sendable {
  private let store: Store
  private let views: RunningViews
  private let rule: PurgeRule
  private let registry: GrantService.RegistrySource
  private let kept: KeptUsage
  /// Is called when there is an answer for apps that wait for one.
  private let answered: @Sendable () -> Void
  private let thread = Mutex<JoinableThread?>(nil)
  /// Walks through places, those of one user after each other.
  private let walks = UserWork()
  /// Whose places are not walked through, since that does not get on.
  private let stalled = Mutex<Set<UInt32>>([])
  private let isOver = Atomic(false)

  /// What apps are told.
  private struct Space {
    var answer: (reply: ControlReply, at: UInt64)?
    /// What a purge would free, and when that was summed up.
    var purgeable: (bytes: Int64, at: UInt64)?
  }
  private let space = Mutex(Space())
  private let isSpaceWanted = Atomic(false)

  /// How long everything may take together that is found out while somebody waits, in nanoseconds.
  private static let allowance: UInt64 = 25_000_000
  /// When all is looked at for the first time, and how often after that, in milliseconds.
  private static let firstRound: UInt64 = 60_000
  private static let round: UInt64 = 15 * 60_000
  /// How often what a purge would free is summed up for apps: what they see of each other's starts and ends
  /// by that is little, and late.
  private static let sumNanoseconds: UInt64 = 30_000_000_000
  /// Without a sign of life for so long, a walk does not get on.
  private static let patience: UInt64 = 30_000_000_000

  init(
    _ store: Store, _ views: RunningViews, _ rule: PurgeRule, registry: @escaping GrantService.RegistrySource,
    answered: @escaping @Sendable () -> Void
  ) {
    (self.store, self.views, self.rule) = (store, views, rule)
    (self.registry, self.answered) = (registry, answered)
    kept = KeptUsage(RememberedUsage(in: store)) { (place, pause) throws(Errno) in
      try place.measure(in: store, pause: pause)
    }
  }

  // MARK: Reports

  func report(
    _ request: StorageRequest, by caller: CallerIdentity, isCancelled: () -> Bool
  ) -> ControlReply {
    do throws(StoreError) {
      let meter = try meter()
      var allowance = Self.allowance
      var names = 0
      do throws(AppFailure) {
        return .storage(
          try meter.report(request, by: caller, rule: rule, purgeable: { [self] in kept.purgeable(runs) }) {
            (place) throws(Errno) in
            try kept.usage(of: place, allowance: &allowance) { () throws(Errno) in
              names &+= 1
              if names % 1024 == 0, isCancelled() { throw .EINTR }
            }
          })
      } catch {
        return .failure(ControlFailure(error))
      }
    } catch {
      return .failure(ControlFailure(error))
    }
  }

  /// What was purged of an app is gone.
  func purged(_ report: PurgeReport) {
    for item in report.items where item.freed.count > 0 { kept.changed(item.app, of: item.user) }
  }

  private func meter() throws(StoreError) -> StorageMeter {
    StorageMeter(store, try registry(false), now: wallMilliseconds() / 1000, runs: runs)
  }

  private func runs(_ app: AppIdentifier, _ user: UInt32) -> Bool { views.has(AppOfUser(app, user)) }

  // MARK: What apps are told

  /// An app asks what it may store; gives what gives the answer as soon as there is one.
  func askSpace() -> @Sendable () -> ControlReply? {
    let asked = monotonicNanoseconds()
    isSpaceWanted.store(true, ordering: .sequentiallyConsistent)
    kept.wake()
    return { [self] in
      space.withLock { space -> ControlReply? in
        guard let answer = space.answer, answer.at >= asked else { return nil }
        return answer.reply
      }
    }
  }

  private func answerSpace() {
    guard isSpaceWanted.exchange(false, ordering: .sequentiallyConsistent) else { return }
    let now = monotonicNanoseconds()
    let known = space.withLock { $0.purgeable }
    let isFresh = known.map { now &- $0.at < Self.sumNanoseconds } ?? false
    let sum = isFresh ? known : (kept.purgeable(runs), now)
    let reply = ControlReply { () throws(ControlFailure) in
      do throws(Errno) {
        return .space(AvailableSpace(try store.tree.diskSpace(), purgeable: sum?.bytes ?? 0, rule: rule))
      } catch {
        throw ControlFailure("can't find out how full the disk is: \(error.message)", error)
      }
    }
    space.withLock { $0 = Space(answer: (reply, now), purgeable: sum) }
    answered()
  }

  // MARK: The slow walk

  func start() throws(Errno) {
    let started = try JoinableThread(name: "storage") { [self] in keepUp() }
    thread.withLock { $0 = started }
  }

  /// Returns when it has ended.
  func stop() {
    isOver.store(true, ordering: .sequentiallyConsistent)
    kept.wake()
    let thread = thread.withLock { $0.take() }
    thread?.join()
    walks.finish(milliseconds: 1000)
    leave()
  }

  private func leave() { if kept.hasNews { kept.remembered.leave(in: store) } }

  private func keepUp() {
    var next = monotonicNanoseconds() &+ Self.firstRound &* 1_000_000
    while !isOver.load(ordering: .sequentiallyConsistent) {
      answerSpace()
      if let place = kept.nextWanted() {
        look(at: place)
      } else if monotonicNanoseconds() >= next {
        let places = (try? meter().places()) ?? []
        kept.keepOnly(places)
        for place in places { look(at: place) }
        leave()
        next = monotonicNanoseconds() &+ Self.round &* 1_000_000
      } else {
        let left = next &- monotonicNanoseconds()
        kept.wait(milliseconds: Int(clamping: left / 1_000_000 &+ 1)) { [self] in
          isOver.load(ordering: .sequentiallyConsistent)
            || isSpaceWanted.load(ordering: .sequentiallyConsistent)
        }
      }
    }
  }

  /// A user who holds a file in the kernel may keep a walk through their places waiting for as long as they
  /// like: others wait for that only for a while, and whoever asks how much room there is not at all.
  private func look(at place: StoragePlace) {
    let user = place.owner.user ?? 0
    guard !isOver.load(ordering: .sequentiallyConsistent), !stalled.withLock({ $0.contains(user) }) else {
      return
    }
    let walk = Condition((lived: monotonicNanoseconds(), isDone: false))
    let begun = walks.begin(for: .user(user), as: "walk") { [self] in
      Pace.giveWay()
      let pace = Pace(rests: 9)
      _ = try? kept.measure(place) { () throws(Errno) in
        pace.rest()
        walk.withLock { $0.lived = monotonicNanoseconds() }
        if isOver.load(ordering: .relaxed) { throw .EINTR }
      }
      walk.change { $0.isDone = true }
      _ = stalled.withLock { $0.remove(user) }
    }
    guard begun != nil else { return }
    while !walk.wait(milliseconds: 50, until: { $0.isDone }) {
      answerSpace()
      if isOver.load(ordering: .sequentiallyConsistent) { return }
      let isLost = stalled.withLock { stalled in
        let isLost = walk.withLock {
          !$0.isDone && monotonicNanoseconds() &- $0.lived > Self.patience
        }
        if isLost { stalled.insert(user) }
        return isLost
      }
      guard isLost else { continue }
      DaemonLog.write("what user \(user) has can't be measured now; it is left out until it can")
      return
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Store

extension Installer {
  /// Makes the containers of whoever has installed an app: of the user whose app it is, or of the caller, if
  /// they have a home in the store.
  func makeContainers(for app: InstalledApp, by caller: CallerIdentity) throws(AppFailure) {
    let user = app.user ?? caller.uid
    try making(app) { () throws(StoreError) in
      let home: String
      do throws(StoreError) { home = try store.home(of: user) } catch .noHome { return } catch .homeIsAway {
        return
      }
      try alone(for: user, in: "Users/\(home)/") { () throws(StoreError) in
        try makeUnlessGone(app, home)
      }
    }
  }

  /// Another user's turn keeps nobody from removing the app meanwhile: nothing would ever remove containers
  /// of one that is gone.
  private func makeUnlessGone(_ app: InstalledApp, _ home: String) throws(StoreError) {
    do throws(StoreError) {
      _ = try containers.make(for: app, home: home, ifInstalled: true)
    } catch .noApp {}
  }

  /// Brings containers into line with what is installed now, after an app has changed or gone.
  ///
  /// The link to the bundle leads to the one that its user has; new groups and what is new in iCloud get
  /// containers; what nobody has any more is removed; what of that stays is given.
  ///
  /// `before` is the version that the app had.
  func completeContainers(
    of app: InstalledApp, before: InstalledApp? = nil
  ) throws(AppFailure) -> [LeftBehind] {
    // What earlier removals have left, those who asked for them were told.
    let own = [app.identifier] + app.groups + (before?.groups ?? [])
    return try making(app) { () throws(StoreError) in
      let removed = try removeMarked(of: app.user, named: own)
      try complete(app)
      return removed.left(of: own, user: app.user)
    }
  }

  /// Has each container of an app made whole.
  private func complete(_ app: InstalledApp) throws(StoreError) {
    let records = try registry.containers(
      kind: .data, identifier: app.identifier, user: app.user, isMarkedForRemoval: false)
    let outcomes = try inPlaces(of: records, about: app.user) { (records) throws(StoreError) in
      // What stands in the way in one home is no reason to leave the others as they are.
      var failure: StoreError?
      let outside = try self.registry.namesOfHomesElsewhere()
      for record in records {
        do throws(StoreError) {
          try self.alone(for: record.user, in: record.path, outside) { () throws(StoreError) in
            try self.complete(record)
          }
        } catch .noHome {
          continue
        } catch {
          failure = failure ?? error
        }
      }
      if let failure { throw failure }
    }
    // Where a home does not answer, the next start of the app makes the rest.
    for case .some(.failure(let failure)) in outcomes.map(\.result) { throw failure }
  }

  /// Makes what the app of a container needs by now; it is its user's turn.
  private func complete(_ known: ContainerRecord) throws(StoreError) {
    // Its user may have removed the app while others had their turn.
    let current = try registry.containers(
      kind: .data, identifier: known.identifier, user: known.user, isMarkedForRemoval: false)
    // What is kept stays kept until its user starts the app.
    guard let record = current.first, record.keeper == nil,
      let app = try registry.app(record.identifier, for: record.user),
      let home = Homes.name(in: record.path)
    else { return }
    try makeUnlessGone(app, home)
  }

  // MARK: Removal

  /// Removes the containers of apps that are gone, as far as somebody goes.
  @discardableResult
  func removeMarked(
    _ scope: RecoveryScope, where isMeant: (ContainerRecord) -> Bool
  ) throws(StoreError) -> Containers.Removal {
    let outside = try registry.namesOfHomesElsewhere()
    return try removeMarked(
      try registry.containers(isMarkedForRemoval: true).filter {
        scope.reaches(containerAt: $0.path.utf8, of: $0.user, outside: outside) && isMeant($0)
      })
  }

  /// Removes those with some identifiers, of one user or of all.
  func removeMarked(
    of user: UInt32?, named identifiers: [AppIdentifier]
  ) throws(StoreError) -> Containers.Removal {
    let marked = try registry.containers(user: user, isMarkedForRemoval: true).filter { record in
      identifiers.contains { $0.isSame(as: record.identifier) }
    }
    var removal = Containers.Removal()
    let outcomes = try inPlaces(of: marked, about: user) { (records) throws(StoreError) in
      try self.removeMarked(records)
    }
    for outcome in outcomes {
      switch outcome.result {
      case .success(let removed): removal.add(removed)
      case .failure(let failure): throw failure
      case nil:
        for record in outcome.records { removal.add(waiting: record) }
      }
    }
    return removal
  }

  private func removeMarked(_ marked: [ContainerRecord]) throws(StoreError) -> Containers.Removal {
    var removal = Containers.Removal()
    // A user may have some in a home that is none any more.
    let outside = try registry.namesOfHomesElsewhere()
    for (key, records) in Dictionary(
      grouping: marked, by: { Self.turn(of: $0.user, $0.path, outside, in: store) }
    )
    .inOrder(by: { $0.key.user < $1.key.user }) {
      let known = Set(records.map(\.uuid))
      try Self.turns.with(key) { () throws(StoreError) in
        removal.add(try containers.removeMarked(of: key.user) { known.contains($0.uuid) })
      }
    }
    return removal
  }

  // MARK: Places

  /// What came of something in the store itself, or in a home outside of it; nil where that does not answer.
  private struct Outcome<Value: Sendable> {
    let records: [ContainerRecord]
    let result: Result<Value, StoreError>?
  }

  /// Does something to containers: at once to those in the store itself, and to those in homes outside of it
  /// on the threads of these, which are waited for together and for a moment.
  ///
  /// What a user does in their own home they wait for.
  private func inPlaces<Value: Sendable>(
    of records: [ContainerRecord], about user: UInt32?,
    _ body: @escaping @Sendable ([ContainerRecord]) throws(StoreError) -> Value
  ) throws(StoreError) -> [Outcome<Value>] {
    let outside = try registry.namesOfHomesElsewhere()
    var here: [ContainerRecord] = []
    var there: [[UInt8]: [ContainerRecord]] = [:]
    for record in records {
      if user == nil, let home = RecoveryScope.home(in: record.path.utf8), outside.contains(home) {
        there[home, default: []].append(record)
      } else {
        here.append(record)
      }
    }
    let work = HomeWork.ofProcess
    // One that is away has to wait until it is there again.
    let begun = there.compactMap { (name, records) in
      store.homeElsewhere(named: name).map { home in
        let isHanging = work.hangs(in: home)
        let result = work.begin(in: home) { Self.result { () throws(StoreError) in try body(records) } }
        return (records: records, result: isHanging ? nil : result)
      }
    }
    var outcomes = [Outcome(records: here, result: .success(try body(here)))]
    let end = monotonicNanoseconds() &+ UInt64(HomeWork.patienceMilliseconds) * 1_000_000
    for (records, result) in begun {
      outcomes.append(Outcome(records: records, result: result?.value(until: end)))
    }
    return outcomes
  }

  private static func result<Value>(
    _ body: () throws(StoreError) -> Value
  ) -> Result<Value, StoreError> {
    do throws(StoreError) { return .success(try body()) } catch { return .failure(error) }
  }

  /// One thread at a time makes and removes the containers of a user in one place: what one finds marked for
  /// removal, another may be making again.
  ///
  /// Others have their own, and don't wait for one whose app has hundreds or whose disk is slow.
  ///
  /// `outside` has the names of the homes that lie outside of the store, for who has just asked for them.
  func alone<Result: Sendable>(
    for user: UInt32, in path: String, _ outside: Set<[UInt8]>? = nil,
    _ body: () throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    try Self.alone(for: user, in: path, store, registry, outside, body)
  }

  /// The same for others who make or replace containers, such as whoever starts an app.
  static func alone<Result: Sendable>(
    for user: UInt32, in path: String, _ store: Store, _ registry: Registry, _ outside: Set<[UInt8]>? = nil,
    _ body: () throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    let names: Set<[UInt8]>
    if let outside { names = outside } else { names = try registry.namesOfHomesElsewhere() }
    return try turns.with(turn(of: user, path, names, in: store), body)
  }

  private static func turn(
    of user: UInt32, _ path: String, _ outside: Set<[UInt8]>, in store: Store
  ) -> Turn {
    guard let home = RecoveryScope.home(in: path.utf8), outside.contains(home) else {
      return Turn(user: user, place: .store)
    }
    let target = store.homeElsewhere(named: home)?.target
    return Turn(user: user, place: target.map { .home($0.number) } ?? .away(home))
  }

  /// A user's in the store itself, or in a home outside of it.
  private struct Turn: Hashable, Sendable {
    enum Place: Hashable, Sendable {
      case store
      /// Which home it is, whatever its name: the next one of that name may wait for nothing of it.
      case home(RedirectedNames.Number)
      /// Nothing is done there.
      case away([UInt8])
    }
    let user: UInt32
    let place: Place
  }

  private static let turns = KeyedTurns<Turn>()

  private func making<Result: Sendable>(
    _ app: InstalledApp, _ body: () throws(StoreError) -> Result
  ) throws(AppFailure) -> Result {
    do throws(StoreError) { return try body() } catch {
      throw .containersNotMade(identifier: app.identifier.text, error)
    }
  }
}

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
      let homes = try Homes(tree: store.tree, path: treePath, mode: store.description.mode).list()
      guard let home = homes.first(where: { $0.uid == user }) else { return }
      try alone(for: user) { () throws(StoreError) in
        _ = try containers.make(for: app, home: home.name)
      }
    }
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
    try making(app) { () throws(StoreError) in
      let removed = try removeMarked(of: app.user)
      // What stands in the way in one home is no reason to leave the others as they are.
      var failure: StoreError?
      for record in try registry.containers(
        kind: .data, identifier: app.identifier, user: app.user, isMarkedForRemoval: false)
      {
        do throws(StoreError) {
          try alone(for: record.user) { () throws(StoreError) in try complete(record) }
        } catch .noHome {
          continue
        } catch {
          failure = failure ?? error
        }
      }
      if let failure { throw failure }
      // What earlier removals have left, those who asked for them were told.
      let own = [app.identifier] + app.groups + (before?.groups ?? [])
      return removed.left(of: own, user: app.user)
    }
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
    _ = try containers.make(for: app, home: home)
  }

  /// Removes the containers of apps that are gone, of one user or of all.
  func removeMarked(of user: UInt32?) throws(StoreError) -> Containers.Removal {
    var removal = Containers.Removal()
    let marked = try registry.containers(user: user, isMarkedForRemoval: true)
    for user in Set(marked.map(\.user)).inOrder(by: <) {
      try alone(for: user) { () throws(StoreError) in removal.add(try containers.removeMarked(of: user)) }
    }
    return removal
  }

  /// One thread at a time makes and removes the containers of a user: what one finds marked for removal,
  /// another may be making again.
  ///
  /// Others have their own, and don't wait for one whose app has hundreds or whose disk is slow.
  func alone<Result: Sendable>(
    for user: UInt32, _ body: () throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    try Self.turns.with(user, body)
  }

  private static let turns = UserTurns()

  private func making<Result: Sendable>(
    _ app: InstalledApp, _ body: () throws(StoreError) -> Result
  ) throws(AppFailure) -> Result {
    do throws(StoreError) { return try body() } catch {
      throw .containersNotMade(identifier: app.identifier.text, error)
    }
  }
}

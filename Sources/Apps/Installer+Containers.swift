// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization

extension Installer {
  /// Makes the containers of whoever has installed an app: of the user whose app it is, or of the caller, if
  /// they have a home in the store.
  func makeContainers(for app: InstalledApp, by caller: CallerIdentity) throws(AppFailure) {
    let user = app.user ?? caller.uid
    try making(app) { () throws(StoreError) in
      let homes = try Homes(tree: store.tree, path: treePath, mode: store.description.mode).list()
      guard let home = homes.first(where: { $0.uid == user }) else { return }
      _ = try containers.make(for: app, home: home.name)
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
      let removed = try containers.removeMarked()
      // What stands in the way in one home is no reason to leave the others as they are.
      var failure: StoreError?
      for record in try registry.containers(
        kind: .data, identifier: app.identifier, isMarkedForRemoval: false)
      {
        // What is kept stays kept until its user starts the app.
        guard record.keeper == nil, let current = try registry.app(app.identifier, for: record.user),
          let home = Homes.name(in: record.path)
        else {
          continue
        }
        do throws(StoreError) { _ = try containers.make(for: current, home: home) } catch .noHome {
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

  /// One thread at a time makes and removes containers: what one finds marked for removal, another may be
  /// making again.
  func alone<Result: Sendable>(_ body: () throws(StoreError) -> Result) throws(StoreError) -> Result {
    try Self.workOnContainers.withLock { (_) throws(StoreError) in try body() }
  }

  private static let workOnContainers = Mutex(())

  private func making<Result: Sendable>(
    _ app: InstalledApp, _ body: () throws(StoreError) -> Result
  ) throws(AppFailure) -> Result {
    do throws(StoreError) { return try alone(body) } catch {
      throw .containersNotMade(identifier: app.identifier.text, error)
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import Daemon
internal import LinuxIO
internal import Policy
internal import Store

/// What a command may ask of a store.
///
/// There are two to ask: the daemon that serves the store (``DaemonAccess``), which answers users who may not
/// look into it, and the store itself where no daemon has it (``DirectAccess``).
/// ``AppsAccess/find(_:writing:_:)`` chooses, and nobody else needs to know which one it is. Where root names
/// no user, all are meant.
protocol StoreAccess {
  var context: Context { get }

  /// Where the tree is to be seen.
  var root: String { get }

  /// Which store it is.
  var storePath: String { get }

  // MARK: What there is

  /// All apps that a user has.
  func apps(for user: UInt32?) throws -> [AppDescription]

  func app(_ identifier: AppIdentifier, for user: UInt32?) throws -> AppDescription

  /// Where a place of an app is, below ``root``; makes what is missing of its containers.
  func path(of place: AppPlace, _ identifier: AppIdentifier, for user: UInt32?) throws -> String

  /// The path of a user's home below ``root``.
  func home(of user: UInt32) throws -> String

  /// Opens the tree, to work on what a user has in it.
  func openTree(for user: UInt32?) throws -> OpenedTree

  /// The store itself, to look at, whoever serves it.
  func openedStore() throws -> Store

  /// From the registry, or where that is closed to us, from what the mount shows.
  func systemVersions() throws -> SystemVersions

  /// The judge of signatures who trusts whom the store trusts.
  func trust() throws -> Trust

  /// What apps say of types and documents, and what the user has chosen.
  func documents(for user: UInt32?) throws -> DocumentsPage

  // MARK: Changes

  /// Lets an app open the user's documents of a type; with none, any that does.
  func choose(_ identifier: AppIdentifier?, for type: String) throws

  func install(_ bundle: FD, named name: String, for domain: AppDomain) throws -> InstalledApp

  func update(
    _ bundle: FD, named name: String, for domain: AppDomain, allowingDowngrade: Bool
  ) throws -> (before: InstalledApp, now: InstalledApp, left: [LeftBehind])

  /// The same for an app that may run: then the new version waits until it ends.
  func updateWhenClosed(
    _ bundle: FD, named name: String, for domain: AppDomain, allowingDowngrade: Bool
  ) throws -> UpdateOutcome

  /// Gives up the update that waits.
  func cancelUpdate(of identifier: AppIdentifier, for domain: AppDomain) throws -> WaitingUpdate

  /// Gives no app where only what an earlier removal had left was there to remove.
  func uninstall(
    _ identifier: AppIdentifier, of domain: AppDomain, keepingData: Bool
  ) throws -> (app: InstalledApp?, left: [LeftBehind])

  /// Gives where it is now, below ``root``.
  func deliver(_ delivery: Delivery) throws -> String

  func replaceData(with newData: NewData) throws

  /// Throws away what apps can make again.
  func purge(_ request: PurgeRequest) throws -> PurgeReport

  /// The removed containers of a user, or of all for whom we may ask.
  func removed(of user: UInt32?) throws -> RemovedReport

  func restoreRemoved(_ number: Int64) throws -> RemovedReport

  /// Deletes one of them, or all of a user.
  func deleteRemoved(_ number: Int64?, of user: UInt32?) throws -> RemovedReport

  /// Forgets what counts for a user's number and must not count for the next holder; gives what was set
  /// aside, by paths below the store, or nil if nothing that was decided had to be forgotten.
  @discardableResult
  func forget(_ former: FormerUser) throws -> [LeftBehind]?

  /// Has what lies in a home be noted for its owner, before the home is removed; or deletes what was removed
  /// from it.
  func prepareRemoval(ofHome name: String, deletingRemoved: Bool) throws

  /// Forgets the home of that name that was ejected, or of several the one that was in a place.
  func forgetEjectedHome(_ name: String, from source: String?) throws

  /// Assigns a team to a root that the store trusts; gives the root that it was assigned to before.
  func assign(team: String, to root: [UInt8]) throws -> [UInt8]?

  func updateSystem(_ tree: FD, named name: String) throws -> SystemVersions

  func rollbackSystem() throws -> SystemVersions

  // MARK: Grants

  /// Has something granted or taken back.
  @discardableResult
  func perform(_ request: GrantRequest) throws -> [GrantedPlace]

  /// What was granted to an app, or to all.
  func grants(_ identifier: AppIdentifier?, of user: UInt32?) throws -> [GrantedPlace]

  // MARK: Consent

  /// What was decided about apps and services, or what holds once something is decided.
  func consents(_ request: ConsentRequest) throws -> [ConsentStatus]

  // MARK: What was refused and done

  /// A page of the log.
  func log(_ query: LogQuery) throws -> LogPage

  /// How much room apps take.
  func storage(_ request: StorageRequest) throws -> StorageReport

  // MARK: Apps that run

  func running(for user: UInt32?) throws -> [RunningApp]

  /// Ends what runs of an app, or sends it a signal.
  func end(_ identifier: AppIdentifier, of user: UInt32?, with signal: Int32?) throws

  /// Whom to ask to run an app; none can run from a store that nobody serves.
  func runner() throws -> RunningDaemon
}

extension StoreAccess {
  /// Who is meant where no user is named.
  func orOneself(_ user: UInt32?) -> UInt32? { user ?? (context.isRoot ? nil : context.uid) }

  /// Throws for an app that runs: it would go on with what it has read of its data before.
  func requireEnded(_ identifier: AppIdentifier, for user: UInt32?) throws {
    guard
      try running(for: user).contains(where: { AppIdentifier($0.identifier)?.isSame(as: identifier) == true })
    else { return }
    throw CommandFailure(.busy, "the app is running; end it first ('insula kill \(identifier)')")
  }

  /// Does what takes its time, and shows meanwhile how far it is.
  func showingProgress<Result>(
    _ body: (_ note: @escaping @Sendable (InstallProgress) -> Void) throws -> Result
  ) rethrows -> Result {
    try ProgressLine.show(context.console, InstallProgress.text, while: body)
  }

  /// Opens an app's container; what is missing of it is made.
  ///
  /// What is put into it is for the app that was looked at, and for no other that has its identifier by then.
  func container(of app: AppDescription, for user: UInt32?) throws -> AppContainer {
    let path = try pathOfContainer(try identifier(of: app), for: user)
    return try openContainer(path, .data, of: app, for: user)
  }

  private func openContainer(
    _ path: String, _ kind: ContainerKind, of app: AppDescription, for user: UInt32?
  ) throws -> AppContainer {
    let tree = try openTree(for: user)
    let container = try AppContainer(
      path, in: tree.directory.fd, at: root, access: tree.access, kind: kind, team: BackupTeam(of: app))
    // What is read is what is open: another team's may have got the path since the app was looked at.
    let now = try self.app(try identifier(of: app), for: user ?? context.uid)
    guard now.team.hasSameBytes(as: app.team), now.root == app.root else {
      throw StoreError.containerOfOther(path: path, identifier: app.identifier)
    }
    return container
  }

  private func identifier(of app: AppDescription) throws -> AppIdentifier {
    guard let identifier = AppIdentifier(app.identifier) else {
      throw StoreError.noApp(identifier: app.identifier)
    }
    return identifier
  }

  /// The same for the container of a group that an app is in.
  func container(
    ofGroup group: AppIdentifier, in app: AppDescription, for user: UInt32?
  ) throws -> AppContainer {
    let path = try path(of: .group(group), try identifier(of: app), for: user)
    return try openContainer(path, .group, of: app, for: user)
  }

  /// The path of an app's container, below ``root``.
  func pathOfContainer(_ identifier: AppIdentifier, for user: UInt32?) throws -> String {
    let home = try path(of: .home, identifier, for: user)
    return String(home.dropLast(ContainerLayout.dataName.utf8.count + 1))
  }
}

/// The tree of a store, and how a command gets at ACLs and flags in it.
struct OpenedTree: ~Copyable {
  let directory: OwnedFD
  let access: SecurityAccess
}

extension GrantPage {
  /// Collects what comes in parts.
  static func all(_ page: (_ after: Int64) throws -> GrantPage) rethrows -> [GrantedPlace] {
    var places: [GrantedPlace] = []
    var after: Int64 = 0
    while true {
      let part = try page(after)
      places += part.places
      guard let next = part.next, next > after else { return places }
      after = next
    }
  }
}

extension InstallProgress {
  /// For people; nil stands for nothing heard yet.
  fileprivate static func text(_ last: InstallProgress?) -> String {
    guard let last else { return "waiting for other work on the store" }
    guard last.total > 0 else { return last.phase.rawValue }
    let percent = min(max(last.done, 0), last.total).multipliedReportingOverflow(by: 100)
    let share = percent.overflow ? "" : ", \(percent.partialValue / last.total) %"
    return
      "\(last.phase.rawValue): \(Int(clamping: last.done).asSize) "
      + "of \(Int(clamping: last.total).asSize)\(share)"
  }
}

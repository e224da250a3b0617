// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import Volume

/// Starts apps for those who ask, tells what runs, and ends it.
final class LaunchService: Sendable {
  let store: Store
  let server: Server
  let apps: AppService
  let log: EventLog
  let launcher: AppLauncher
  let mountPoint: String

  init(_ store: Store, _ server: Server, _ apps: AppService, _ log: EventLog, mountPoint: String) {
    self.log = log
    self.store = store
    self.server = server
    self.apps = apps
    self.mountPoint = mountPoint
    launcher = AppLauncher(store)
  }

  private var isSystem: Bool { store.description.mode == .system }

  // MARK: run

  /// What follows when someone wants an app to run.
  func run(_ identifier: AppIdentifier, for asked: UInt32?, _ call: ControlCall) -> ControlAnswer {
    let user = call.caller.uid
    guard user == asked ?? user else {
      return .refusal("an app runs as the user who starts it; root can use 'insula run --user'")
    }
    guard isSystem || user == ProcessID.user else {
      return .refusal("only the owner of this store can run its apps")
    }
    // How a view reaches its kernel depends on the store's mode.
    guard isSystem == (call.descriptor == nil) else {
      return .refusal("the request does not match the mode of the store", .EINVAL)
    }
    guard let process = call.process else {
      return .refusal("the caller has ended, or this kernel can't identify it", .ESRCH)
    }
    let share: BudgetShare
    do throws(Errno) {
      share = try server.views.room(for: user)
    } catch {
      return .refusal(
        "this user has too many running apps; end some first ('insula ps', 'insula kill ID')",
        error)
    }
    let caller = LaunchedBy(
      user: user, group: call.caller.gid, pid: call.caller.pid, process: process, share: share)
    return .job(.launches) { reporter in
      do throws(AppFailure) {
        return try self.launchWhenFree(identifier, caller, call.descriptor, reporter)
      } catch {
        return .failure(ControlFailure(error))
      }
    }
  }

  /// Tries again for a moment where the app is just being changed.
  ///
  /// An update takes no longer than a rename, and the disk's time to note it.
  private func launchWhenFree(
    _ identifier: AppIdentifier, _ caller: LaunchedBy, _ connection: SharedFD?, _ reporter: ControlReporter
  ) throws(AppFailure) -> ControlReply {
    let end = monotonicNanoseconds() &+ Self.longestChange
    while true {
      do throws(AppFailure) {
        return try launch(identifier, caller, connection, reporter)
      } catch {
        guard case .busy = error, monotonicNanoseconds() < end, !reporter.isCancelled else { throw error }
      }
      // Nothing says when it is done.
      pauseThread(milliseconds: 20)
    }
  }

  /// Longer than starts that hang hold up a change.
  private static let longestChange = UInt64(RunningViews.patienceMilliseconds + 3000) * 1_000_000

  private func launch(
    _ identifier: AppIdentifier, _ caller: LaunchedBy, _ connection: SharedFD?, _ reporter: ControlReporter
  ) throws(AppFailure) -> ControlReply {
    apps.placeUpdate(of: try installed(identifier, caller.user).app) { reporter.isCancelled }
    let found = try installed(identifier, caller.user)
    let ofUser = AppOfUser(found.app.identifier, caller.user)
    guard let start = server.views.start(ofUser, from: found.app.path) else {
      throw .busy(identifier: identifier.text)
    }
    defer { server.views.started(start) }
    do throws(AppFailure) {
      return try begin(start, of: found.app, caller, connection, reporter)
    } catch {
      // What the app is, or has, may have changed meanwhile.
      guard server.views.mayBegin(start) else { throw .busy(identifier: identifier.text) }
      throw error
    }
  }

  private func begin(
    _ start: AppStart, of found: InstalledApp, _ caller: LaunchedBy, _ connection: SharedFD?,
    _ reporter: ControlReporter
  ) throws(AppFailure) -> ControlReply {
    let identifier = found.identifier
    // From here on it stays what it is, unless the start is called off; until here it need not have.
    let (app, registry) = try installed(identifier, caller.user)
    guard app == found else { throw .busy(identifier: identifier.text) }
    let hold = try leases(of: app, inHome: try home(of: caller.user), .patiently)
    var hasMade = false
    let making = { () throws(StoreError) -> Containers in
      hasMade = true
      return try self.apps.containers()
    }
    let launch = try launcher.launch(
      app, for: caller.user, registry, making: apps.isReadOnly ? nil : making)
    if hasMade { apps.noteContainers(in: launch.home) }
    if !apps.isReadOnly { server.consents.makePlaces(for: launch, of: caller.user, caller.group) }
    var given: Set<PrivacyService> = []
    let view = try server.grants.view(of: app, for: caller.user, launch.places) {
      given = server.consents.authorized(launch, for: caller.user)
      return server.consents.places(of: launch, with: given)
    } mayBegin: {
      server.views.mayBegin(start)
    }
    #if DEBUG
      Halt.at(.viewMade)
    #endif
    let mount: SharedFD?
    do throws(Errno) {
      mount = try server.serve(launch, view, of: start, by: caller, over: connection, hold)
    } catch {
      throw .failed(doing: "create a view of", path: mountPoint, errno: error)
    }
    server.consents.began(launch, for: caller.user, with: given)
    server.noteRun(of: launch)
    log.record(LogEntry(launch: launch, by: caller))
    if let mount { reporter.pass(mount) }
    return .launch(LaunchPlan(launch, mountPoint: mountPoint, isReadOnly: apps.isReadOnly))
  }

  func home(of user: UInt32) throws(AppFailure) -> String {
    do throws(StoreError) { return try store.home(of: user) } catch { throw .store(error) }
  }

  /// Leases on the app's containers, if other stores can reach these.
  func leases(
    of app: InstalledApp, inHome home: String, _ way: ContainerLeases.Way
  ) throws(AppFailure) -> ContainerHold? {
    let own = ContainerLeases.name(of: .data, app.identifier)
    do throws(StoreError) {
      return try server.leases.take(
        [(.data, app.identifier)] + app.groups.map { (.group, $0) } + app.clouds.map { (.cloud, $0) },
        of: home, way)
    } catch {
      guard case .leased(let name, let host) = error else { throw .store(error) }
      let shared = name == own ? nil : String(name.drop { $0 != "-" }.dropFirst())
      throw .runsElsewhere(identifier: app.identifier.text, sharing: shared, host: host)
    }
  }

  /// The app that a user has of that identifier; with no user, everyone's.
  func installed(
    _ identifier: AppIdentifier, _ user: UInt32?
  ) throws(AppFailure) -> (app: InstalledApp, registry: Registry) {
    do throws(StoreError) {
      guard let registry = try apps.knownRegistry(), let app = try registry.app(identifier, for: user) else {
        throw StoreError.noApp(identifier: identifier.text)
      }
      return (app, registry)
    } catch {
      throw .store(error)
    }
  }

  // MARK: The end

  /// Notes how an app has ended: only the process that has waited for it knows that, and of no other app.
  func ended(_ ending: AppEnding, _ call: ControlCall) -> ControlAnswer {
    guard let process = call.process, let view = server.views.one(waitedForBy: call.caller, process) else {
      return .refusal("the process that says how an app has ended is not the one that runs it", .ESRCH)
    }
    view.note(ending)
    return .reply(view.knownEnd.why.map(ControlReply.endedBecause) ?? .done)
  }

  // MARK: ps and kill

  /// What runs, of one user or, for root, of all.
  func list(of user: UInt32?, for caller: ControlCaller) -> ControlReply {
    .running(views(of: user, for: caller).map(RunningApp.init))
  }

  /// What follows when someone wants an app to end, or to get a signal.
  func end(
    _ identifier: AppIdentifier, of user: UInt32?, with signal: Int32?, for caller: ControlCaller
  ) -> ControlAnswer {
    let found = views(of: user, for: caller).filter { $0.launch.app.identifier.isSame(as: identifier) }
    guard !found.isEmpty else { return .refusal("\(identifier) is not running; see 'insula ps'", .ESRCH) }
    let running = found.map(RunningApp.init)
    if let signal {
      let refusals = found.compactMap { Self.send(signal, to: $0, by: caller.uid) }
      return .reply(refusals.first.map { .failure($0) } ?? .running(running))
    }
    return .job(.endings) { [self] reporter in
      let awaited = awaitedUpdates(of: found.map(\.launch.app), by: caller)
      return server.views.keepingFromStarting(awaited.map(\.path)) {
        // With those that have begun meanwhile.
        let found = views(of: user, for: caller).filter { $0.launch.app.identifier.isSame(as: identifier) }
        for view in found { view.note(.kill(by: caller.uid, signal: nil)) }
        let left = server.views.end(found) { reporter.isCancelled }
        for app in awaited { apps.placeUpdate(of: app) { reporter.isCancelled } }
        guard let first = left.first else { return .running(running) }
        return .failure(
          ControlFailure(
            "\(identifier), pid \(first.pid), does not end: its view is still in use", .EBUSY))
      }
    }
  }

  /// Those of some apps for which an update waits, and of which the caller ends whatever runs: nobody keeps
  /// such an app from being updated by starting it again and again.
  private func awaitedUpdates(of running: [InstalledApp], by caller: ControlCaller) -> [InstalledApp] {
    running.filter { app in
      (caller.isPrivileged || app.user == caller.uid) && apps.hasWaitingUpdate(of: app)
    }
  }

  /// Sends a signal; why not, if that is refused.
  ///
  /// That it has ended meanwhile is what was wanted.
  private static func send(
    _ signal: Int32, to view: RunningView, by user: UInt32
  ) -> ControlFailure? {
    let before = view.knownEnd.wish
    view.note(.kill(by: user, signal: signal))
    do throws(Errno) {
      try view.send(signal)
      return nil
    } catch {
      view.note(before)
      guard error != .ESRCH else { return nil }
      return ControlFailure(
        "can't send a signal to pid \(view.pid), which waits for \(view.launch.app.identifier): "
          + error.message, error)
    }
  }

  private func views(of user: UInt32?, for caller: ControlCaller) -> [RunningView] {
    server.views.all(user: caller.isPrivileged ? user : caller.uid)
  }
}

extension [RunningView] {
  /// A line for each.
  var lines: String {
    map {
      "  \($0.launch.app.identifier), pid \($0.pid), of "
        + "\(Account.numbered($0.user)?.name ?? "uid \($0.user)")"
    }
    .joined(separator: "\n")
  }
}

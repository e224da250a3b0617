// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// Starts apps for those who ask, tells what runs, and ends it.
final class LaunchService: Sendable {
  private let store: Store
  private let server: Server
  private let apps: AppService
  private let launcher: AppLauncher
  private let mountPoint: String

  init(_ store: Store, _ server: Server, _ apps: AppService, mountPoint: String) {
    self.store = store
    self.server = server
    self.apps = apps
    self.mountPoint = mountPoint
    launcher = AppLauncher(store)
  }

  private var isSystem: Bool { store.description.mode == .system }

  // MARK: run

  /// What follows when someone wants an app to run.
  func run(_ call: ControlCall) -> ControlAnswer {
    let user = call.peer.uid
    guard user == call.request.user ?? user else {
      return .refusal("an app runs as who asks for it; root becomes someone else first ('insula run --user')")
    }
    guard isSystem || user == ProcessID.user else {
      return .refusal("this store is its owner's alone, and only they can run an app of it")
    }
    guard let identifier = call.request.identifier.flatMap({ AppIdentifier($0) }) else {
      return .reply(.malformed)
    }
    guard isSystem == (call.descriptor == nil) else { return .reply(.withoutConnection) }
    guard let process = call.process else {
      return .refusal("who asks has ended, or can't be told from others by this kernel", .ESRCH)
    }
    let share: BudgetShare
    do throws(Errno) {
      share = try server.views.room(for: user)
    } catch {
      return .reply(.tooManyViews(error))
    }
    let caller = LaunchedBy(
      user: user, group: call.peer.gid, pid: call.peer.pid, process: process, share: share)
    return .job(.launches) { reporter in
      do throws(AppFailure) {
        return try self.launch(identifier, caller, call.descriptor, reporter)
      } catch {
        return ControlReply(error)
      }
    }
  }

  private func launch(
    _ identifier: AppIdentifier, _ caller: LaunchedBy, _ connection: SharedFD?, _ reporter: ControlReporter
  ) throws(AppFailure) -> ControlReply {
    let found = try installed(identifier, caller.user)
    guard server.views.start(found.app.path) else { throw .busy(identifier: identifier.text) }
    defer { server.views.started(found.app.path) }
    // From here on it stays what it is; until here it need not have.
    let (app, registry) = try installed(identifier, caller.user)
    guard app == found.app else { throw .busy(identifier: identifier.text) }
    let launch = try launcher.launch(app, for: caller.user, registry) { () throws(StoreError) in
      guard !apps.isReadOnly else { throw StoreError.readOnly(path: mountPoint) }
      return try apps.containers()
    }
    let view = try server.grants.view(of: app, for: caller.user, launch.places)
    let mount: SharedFD?
    do throws(Errno) {
      mount = try server.serve(launch, view, by: caller, over: connection)
    } catch {
      throw .failed(doing: "make a view of", path: mountPoint, errno: error)
    }
    if let mount { reporter.pass(mount) }
    var reply = ControlReply.done
    reply.launch = LaunchPlan(launch, mountPoint: mountPoint)
    return reply
  }

  private func installed(
    _ identifier: AppIdentifier, _ user: UInt32
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

  // MARK: ps and kill

  /// What runs, of one user or, for root, of all.
  func list(_ call: ControlCall) -> ControlReply {
    var reply = ControlReply.done
    reply.running = views(for: call).map(RunningApp.init)
    return reply
  }

  /// What follows when someone wants an app to end, or to get a signal.
  func end(_ call: ControlCall) -> ControlAnswer {
    guard let identifier = call.request.identifier else { return .reply(.malformed) }
    let found = views(for: call).filter { $0.launch.app.identifier.text == identifier }
    guard !found.isEmpty else {
      return .reply(
        ControlReply(
          ok: false, errno: Errno.ESRCH.code, message: "\(identifier) does not run; see 'insula ps'"))
    }
    var reply = ControlReply.done
    reply.running = found.map(RunningApp.init)
    if let signal = call.request.signal {
      guard (1...64).contains(signal) else { return .reply(.malformed) }
      let refusals = found.compactMap { Self.send(signal, to: $0) }
      return .reply(refusals.first ?? reply)
    }
    return .job(.endings) { [server, reply] reporter in
      let left = server.views.end(found) { reporter.isCancelled }
      guard let first = left.first else { return reply }
      return ControlReply(
        ok: false, errno: Errno.EBUSY.code,
        message: "\(identifier), pid \(first.pid), does not end: something holds on to its view")
    }
  }

  /// Sends a signal; the reply if that is refused.
  ///
  /// That it has ended meanwhile is what was wanted.
  private static func send(_ signal: Int32, to view: RunningView) -> ControlReply? {
    do throws(Errno) {
      try view.send(signal)
      return nil
    } catch {
      guard error != .ESRCH else { return nil }
      return ControlReply(
        ok: false, errno: error.code,
        message: "pid \(view.pid), which waits for \(view.launch.app.identifier), can't be sent a signal: "
          + error.message)
    }
  }

  private func views(for call: ControlCall) -> [RunningView] {
    server.views.all(user: call.peer.isMaster ? call.request.user : call.peer.uid)
  }
}

extension ControlReply {
  static func tooManyViews(_ error: Errno) -> ControlReply {
    ControlReply(
      ok: false, errno: error.code,
      message: "as many apps run as this user may have at once; end some first: 'insula ps', 'insula kill ID'"
    )
  }

  /// The way to a view is not the one that this store's mode needs.
  static let withoutConnection = ControlReply(
    ok: false, errno: Errno.EINVAL.code, message: "the view of an app needs another way to the kernel")
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

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
internal import Volume

// What another worker has left of apps that run.

extension LaunchService {
  /// Makes the views again of the apps that another worker has left; those that can't go on end.
  func takeovers(_ kept: KeptState) -> [AppTakeover] {
    let views = kept.views.filter { view in
      view != Server.wholeTree && kept.descriptor(.backup, view: view) == nil
        && kept.descriptor(.files, view: view) == nil
    }
    let apps = views.compactMap { view -> (view: UInt32, left: LeftApp)? in
      if let left = LeftApp(view, in: kept) { return (view, left) }
      drop(view, kept, "what was known of it is lost")
      return nil
    }
    // A user may keep a look into their containers waiting: others wait for that only for a moment.
    let found = Mutex<[UInt32: Result<Resumed?, AppFailure>]>([:])
    let known = apps.map { (view: $0.view, launch: $0.left.launch) }
    let launches = Dictionary(grouping: known, by: \.launch.user)
    let begun = UserWork.ofProcess.begin(for: launches.keys, as: "resume") { [self] user in
      for (view, launch) in launches[user] ?? [] {
        let resumed = Result { () throws(AppFailure) in try resume(launch) }
        found.withLock { $0[view] = resumed }
      }
    }
    _ = begun.wait(milliseconds: HomeWork.patienceMilliseconds)
    let results = found.withLock { $0 }
    return apps.compactMap { view, left in
      do throws(AppFailure) {
        guard let result = results[view] else {
          drop(view, kept, "\(left.launch.identifier): its containers can't be looked at now", left)
          return nil
        }
        if let resumed = try result.get(), let takeover = try takeover(view, left, resumed) {
          return takeover
        }
        let why = "it is not installed as it was when it was started, or a container is not its own any more"
        drop(view, kept, "\(left.launch.identifier): \(why)", left)
        return nil
      } catch {
        drop(view, kept, "\(left.launch.identifier): \(error)", left)
        return nil
      }
    }
  }

  /// What was looked up of an app that goes on.
  private struct Resumed: Sendable {
    let app: InstalledApp
    let launch: AppLaunch
    let hold: ContainerHold?
  }

  /// Nil if another app is in the place of the one that runs, or has one of its containers: what is that
  /// one's is not for it.
  private func resume(_ left: KeptLaunch) throws(AppFailure) -> Resumed? {
    guard let identifier = AppIdentifier(left.identifier) else {
      throw .store(.noApp(identifier: left.identifier))
    }
    // Its user may have got another copy since, which is what they would start now.
    let (app, registry) = try installed(identifier, left.copy.owner)
    guard RunningCopy(app) == left.copy else { return nil }
    // Its user's login may be another one by now, which has a home of its own.
    let home = if let kept = left.home { kept } else { try home(of: left.user) }
    let hold = try leases(of: app, inHome: home, .again)
    guard let launch = try launcher.resume(app, for: left.user, home: home, registry) else { return nil }
    return Resumed(app: app, launch: launch, hold: hold)
  }

  private func takeover(
    _ number: UInt32, _ left: LeftApp, _ resumed: Resumed
  ) throws(AppFailure) -> AppTakeover? {
    let (app, launch, hold) = (resumed.app, resumed.launch, resumed.hold)
    let view = try server.grants.view(
      of: app, for: left.launch.user, launch.places, takingOver: number
    ) {
      server.consents.places(of: launch, with: server.consents.authorized(launch, for: left.launch.user))
    }
    do throws(Errno) {
      // One whose kernel had not begun to ask was never seen by the app.
      guard let first = view.firstMessage else { throw .ENOENT }
      let share = try server.views.room(for: left.launch.user)
      return AppTakeover(
        launch: launch, left: left, view: view, firstMessage: first, share: share, hold: hold)
    } catch {
      view.ended()
      throw .failed(doing: "serve the view of", path: left.launch.identifier, errno: error)
    }
  }

  private func drop(_ view: UInt32, _ kept: KeptState, _ why: String, _ left: LeftApp? = nil) {
    DaemonLog.write("an app that ran can't go on: \(why)")
    if let launch = left?.launch {
      // Without a view it has nothing, and nobody finds it to end it.
      left?.end()
      log.recordLater(
        LogEntry(
          now: .ended, user: launch.user, app: launch.identifier, pid: launch.pid, ending: .unknown,
          detail: "it could not go on when the daemon was replaced"))
    }
    if let connection = kept.descriptor(.connection, view: view) {
      let listener = kept.descriptor(.appListener, view: view)
      kept.forgetAll(of: view)
      if let listener { _ = close(listener.raw) }
      _ = close(connection.raw)
    }
  }
}

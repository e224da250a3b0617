// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
internal import Volume

/// Who is about to run an app.
struct LaunchedBy {
  let user: UInt32
  let group: UInt32
  let pid: Int32
  let process: SharedFD
  /// The view that they are about to have, in their budget.
  let share: BudgetShare
}

extension Server {
  /// Whether something lies in the mount or in another view, by what the kernel remembers.
  func serves(_ object: FD) -> Bool {
    if let device = try? object.deviceInMemory(), device == self.device.withLock({ $0 }) { return true }
    return view.volume.serves(object)
  }

  /// Serves the view of an app: over a connection of the caller's own, or one that is made here; then its
  /// mount comes back.
  func serve(
    _ launch: AppLaunch, _ view: View, of start: AppStart, by caller: LaunchedBy, over theirs: SharedFD?,
    _ hold: ContainerHold?
  ) throws(Errno) -> SharedFD? {
    do throws(Errno) {
      return try begin(launch, view, of: start, by: caller, over: theirs, hold)
    } catch {
      // What its kernel would have said at the end.
      view.ended()
      throw error
    }
  }

  private func begin(
    _ launch: AppLaunch, _ view: View, of start: AppStart, by caller: LaunchedBy, over theirs: SharedFD?,
    _ hold: ContainerHold?
  ) throws(Errno) -> SharedFD? {
    if let theirs {
      let copy = try theirs.use { (fd) throws(Errno) in try fd.duplicated() }
      try serve(launch, view, of: start, by: caller, connection: copy, hold)
      return nil
    }
    var limits: DetachedMount.Limits = [.noDevices, .noSetUserID]
    if !launch.entitlements.runsWhatItWrites { limits.insert(.noPrograms) }
    if options.readOnly { limits.insert(.readOnly) }
    let made = try Mount.detached(for: caller.user, caller.group, source: "insula", limits)
    let mount = made.mount
    try serve(launch, view, of: start, by: caller, connection: made.takeConnection(), hold)
    return mount
  }

  private func serve(
    _ launch: AppLaunch, _ view: View, of start: AppStart, by caller: LaunchedBy,
    connection: consuming OwnedFD, _ hold: ContainerHold?
  ) throws(Errno) {
    let memory = try keep(KeptLaunch(launch, by: caller), caller.process, connection.fd, view)
    let session = try Session(view, over: connection, settings: settings(of: hold))
    let number = views.number()
    let running = RunningView(
      number, launch, user: caller.user, pid: caller.pid, caller.process, view, hold, kept: memory)
    try serve(running, of: start, over: session, caller.share)
    // What the kernel has looked up before that, it would forget at once.
    try waitUntilStarted(view) { views.has(number) }
  }

  /// Serves a view that is no app's until its kernel has ended it; `ended` takes it from where it is known.
  func serve(
    _ session: Session, of view: UInt32, ended: @escaping @Sendable () -> Void
  ) throws(Errno) {
    let kept = kept
    do throws(Errno) {
      try pool.add(session, counter: RequestCounter()) {
        kept?.forgetAll(of: view)
        ended()
      }
    } catch {
      if !TakingOver.isUnderWay { kept?.forgetAll(of: view) }
      ended()
      throw error
    }
  }

  /// Begins such a view again that another worker has left; `add` has it known, or says that nothing begins
  /// any more, and then its connection ends.
  func begin(
    _ left: LeftView, add: () -> Bool, ended: @escaping @Sendable () -> Void
  ) throws(Errno) -> ServingOn? {
    let session = try Session(left.view, over: OwnedFD(owning: left.connection.raw), settings: appSettings)
    guard add() else { return nil }
    return try begin(session, with: left.firstMessage, failed: ended) { () throws(Errno) in
      try self.serve(session, of: left.view.number, ended: ended)
    }
  }

  /// Waits until the kernel has begun to use a view that is served.
  func waitUntilStarted(_ view: View, isServed: () -> Bool) throws(Errno) {
    for _ in 0..<400 {
      if view.waitUntilStarted(milliseconds: 50) { return }
      // What came along was never mounted, or is not any more.
      guard isServed() else { throw .ENODEV }
    }
    throw .EIO
  }

  var appSettings: ConnectionSettings { settings(of: nil) }

  private func settings(of hold: ContainerHold?) -> ConnectionSettings {
    var settings = ConnectionSettings()
    addDataPath(to: &settings)
    settings.deadlines = store.deadlines + (hold?.deadlines ?? [])
    settings.localLocks = options.localLocks
    // What an app had found it would be told on when it has lost it.
    settings.cachesLinks = false
    return settings
  }

  private func serve(
    _ running: RunningView, of start: AppStart?, over session: Session, _ share: BudgetShare
  ) throws(Errno) {
    let (kept, view, number, log) = (kept, running.view.number, running.number, log)
    let appSockets = appSockets
    let runs = RunRecord(store, isReadOnly: options.readOnly)
    if let start {
      guard views.add(running, share, of: start) else {
        kept?.forgetAll(of: view)
        throw .ECANCELED
      }
    } else {
      views.add(running, share)
    }
    endWithItsLeases(running)
    do throws(Errno) {
      try pool.add(session, counter: running.requests) { [views, appPlaces] in
        // Before another view can have the number.
        appPlaces?.remove(view: view)
        kept?.forgetAll(of: view)
        if views.has(number) {
          log.recordLater(LogEntry(ended: running))
          runs.note(running.launch)
        }
        views.remove(number)
        appSockets.remove(number)
        running.hold?.end()
      }
    } catch {
      if !TakingOver.isUnderWay { kept?.forgetAll(of: view) }
      views.remove(number)
      throw error
    }
  }

  /// Without its leases an app does not go on: its requests are refused already.
  private func endWithItsLeases(_ running: RunningView) {
    running.hold?.whenLost { [views, weak running] in
      let why = "another machine may use its container: the lease on it was not renewed in time"
      guard let running, running.note(why: why) else { return }
      DaemonLog.write("\(running.launch.app.identifier), pid \(running.pid), is ended: \(why)")
      let thread = try? JoinableThread(name: "leases") { _ = views.end([running]) }
      if let thread { thread.detach() } else { try? running.send(SIGKILL) }
    }
  }

  /// An app begins to run.
  func noteRun(of launch: AppLaunch) { RunRecord(store, isReadOnly: options.readOnly).note(launch) }

  // MARK: The next worker

  /// Notes what the next worker needs to serve the view on.
  private func keep(
    _ launch: KeptLaunch, _ process: SharedFD, _ connection: FD, _ view: View
  ) throws(Errno) -> SharedMemory? {
    guard let kept else { return nil }
    let memory = try kept.keep(launch.encoded, as: .appLaunch, view: view.number)
    kept.keep(FD(process.number), as: .appProcess, view: view.number)
    kept.keep(connection, as: .connection, view: view.number)
    return memory
  }

  /// Begins the view of an app again where another worker has died.
  func begin(_ app: AppTakeover) throws(Errno) -> ServingOn {
    let left = app.left
    let session = try Session(
      app.view, over: OwnedFD(owning: left.connection.raw), settings: settings(of: app.hold))
    let running = RunningView(
      views.number(), app.launch, user: left.launch.user, pid: left.launch.pid, since: left.launch.since,
      left.process, app.view, app.hold, kept: left.memory)
    // What is sent again may wait for its user, who is asked about an app that runs.
    views.add(running, app.share)
    let failed = { [views] in views.remove(running.number) }
    return try begin(session, with: app.firstMessage, failed: failed) { () throws(Errno) in
      try self.serve(running, of: nil, over: session, app.share)
      if let listener = left.listener { try self.takeOverEndpoint(of: running, listener) }
    }
  }

  /// Begins a session again, and gives what is to be done once all have begun; `failed` undoes that it is
  /// known.
  private func begin(
    _ session: Session, with first: [UInt8], failed: @escaping () -> Void, serve: @escaping ServingOn
  ) throws(Errno) -> ServingOn {
    let slow = volume.slow
    func orUndo(_ body: () throws(Errno) -> Void) throws(Errno) {
      do throws(Errno) { try body() } catch {
        failed()
        throw error
      }
    }
    try orUndo { () throws(Errno) in try session.beginAgain(with: first) }
    return { () throws(Errno) in
      try orUndo { () throws(Errno) in try session.resume(slow) }
      try serve()
    }
  }
}

/// Serves a view that has begun again, from what the kernel sends once more on.
typealias ServingOn = () throws(Errno) -> Void

/// A view that is no app's, as another worker has left it.
struct LeftView {
  let view: View
  let connection: FD
  /// What the kernel sent its first worker first.
  let firstMessage: [UInt8]
}

/// Notes when apps run: what they can make again is thrown away first of those that ran longest ago.
private struct RunRecord: Sendable {
  private let store: Store
  private let isReadOnly: Bool

  init(_ store: Store, isReadOnly: Bool) {
    self.store = store
    self.isReadOnly = isReadOnly
  }

  func note(_ launch: AppLaunch) {
    if !isReadOnly { store.noteRun(of: launch.container, at: wallMilliseconds() / 1000) }
  }
}

extension LogEntry {
  /// An app begins to run.
  init(launch: AppLaunch, by caller: LaunchedBy) {
    self.init(
      now: .launched, user: caller.user, app: launch.app.identifier.text, pid: caller.pid,
      detail: "version \(launch.app.version)")
  }
}

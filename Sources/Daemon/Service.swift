// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
package import LinuxIO
package import Store
internal import Synchronization
internal import Volume

/// Why a mount that is there can't be kept.
package enum ServiceFailure: Error, CustomStringConvertible {
  case controlSocket(directory: String, Errno)

  package var description: String {
    switch self {
    case .controlSocket(let directory, let error):
      "can't make the control socket in \(directory): \(error.message); "
        + "that place must be writable, or XDG_RUNTIME_DIR name one that is"
    }
  }
}

/// Serves one store from mounting to unmounting: the server, the control socket, the signals.
package enum Service {
  /// What the service needs to know besides the store.
  package struct Settings: Sendable {
    package let mountPoint: String
    package let options: ServeOptions
    package let place: ControlPlace
    /// Whether standard error goes to the log, which is then kept short.
    package let inBackground: Bool

    package init(mountPoint: String, options: ServeOptions, place: ControlPlace, inBackground: Bool) {
      self.mountPoint = mountPoint
      self.options = options
      self.place = place
      self.inBackground = inBackground
    }
  }

  /// Mounts, calls `ready` when the mount is there, and returns when it is gone.
  ///
  /// ``DaemonProcess/prepare()`` has been called, and the process has one thread.
  package static func run(store: Store, _ settings: Settings, ready: () throws -> Void) throws {
    let isSystem = store.description.mode == .system
    let remover = isSystem ? nil : try MountRemover.start(for: settings.mountPoint)
    try DaemonCapabilities.dropOthers(isRoots: isSystem || ProcessID.user == 0)
    let apps = try AppService(store, settings)
    let server = try Server.start(
      store: store,
      registry: { (making) throws(StoreError) in try making ? apps.openRegistry() : apps.knownRegistry() },
      mountPoint: settings.mountPoint, options: settings.options, remover: remover)
    apps.serve(server.tree, server.grants)
    store.announce(mountPoint: settings.mountPoint)
    let launches = LaunchService(store, server, apps, mountPoint: settings.mountPoint)
    let control: ListeningPlace
    do {
      control = try listen(store, server, apps, launches, settings)
      try control.server.start()
      try startSignals(store, server, settings)
      if settings.inBackground { try DaemonLog.redirect(in: store.state) }
      try ready()
    } catch {
      // Nobody would know of this mount, so it must not stay.
      try? server.unmount(lazily: true)
      server.waitUntilUnmounted()
      throw error
    }
    DaemonLog.write("\(store.path) is mounted at \(settings.mountPoint)")
    server.waitUntilUnmounted()
    DaemonLog.write("\(store.path) is unmounted")
    control.close()
  }

  private static func listen(
    _ store: Store, _ server: Server, _ apps: AppService, _ launches: LaunchService,
    _ settings: Settings
  ) throws -> ListeningPlace {
    do throws(Errno) {
      return try settings.place.listen(for: store, budget: server.volume.budget) { call in
        answer(call, store, server, apps, launches, settings)
      }
    } catch {
      throw ServiceFailure.controlSocket(
        directory: settings.place.ownDirectory ?? store.path + "/state", error)
    }
  }

  private static func startSignals(_ store: Store, _ server: Server, _ settings: Settings) throws(Errno) {
    try SignalThread.start {
      guard settings.inBackground, (try? DaemonLog.shorten(in: store.state)) != nil else { return }
      try? DaemonLog.redirect(in: store.state)
    } action: { times in
      guard times == 1 else {
        DaemonLog.write("asked to end again, so the mount is left as it is")
        exit(1)
      }
      end(server)
    }
  }

  /// Unmounts; those who still use the mount may finish, and nobody new gets in.
  private static func end(_ server: Server) {
    server.views.endAll()
    do throws(Errno) {
      try server.unmount(lazily: false)
    } catch {
      DaemonLog.write("can't unmount yet (\(error.message)): detached, and ends when the last user has gone")
      try? server.unmount(lazily: true)
    }
  }

  /// Runs on the control socket's thread: what looks at the disk or takes its time is a job.
  private static func answer(
    _ call: ControlCall, _ store: Store, _ server: Server, _ apps: AppService, _ launches: LaunchService,
    _ settings: Settings
  ) -> ControlAnswer {
    switch call.request.verb {
    case .status: return .reply(ControlReply(ok: true, status: status(store, server, settings)))
    case .unmount:
      guard call.peer.isMaster else {
        return .refusal("only root and the owner of the daemon may do this")
      }
      return .job(.endings) { _ in unmount(server, lazily: call.request.lazily ?? false) }
    case .order: return apps.answer(call)
    case .grant: return server.grants.answer(call)
    case .grants: return .job(.questions) { _ in server.grants.list(call) }
    case .run: return launches.run(call)
    case .running: return .job(.questions) { _ in launches.list(call) }
    case .end: return launches.end(call)
    case .apps, .app, .path:
      return .job(.questions) { _ in AppRequest(call.request, call.peer, apps).answer(store) }
    // The connection's own business, which never comes here.
    case .pass: return .reply(.malformed)
    }
  }

  /// While apps run the mount is busy; who wants it to go all the same wants them to end.
  private static func unmount(_ server: Server, lazily: Bool) -> ControlReply {
    let running = server.views.all()
    guard !running.isEmpty else { return takeAway(server, lazily: lazily) }
    var reply = ControlReply(ok: false, errno: Errno.EBUSY.code, message: "apps run:\n" + running.lines)
    if lazily {
      server.views.endAll()
      reply = takeAway(server, lazily: true)
    }
    reply.running = running.map(RunningApp.init)
    return reply
  }

  private static func takeAway(_ server: Server, lazily: Bool) -> ControlReply {
    do throws(Errno) {
      try server.unmount(lazily: lazily)
      return .done
    } catch {
      return ControlReply(ok: false, errno: error.code, message: error.message)
    }
  }

  private static func status(_ store: Store, _ server: Server, _ settings: Settings) -> DaemonStatus {
    var status = DaemonStatus(
      pid: ProcessID.own, store: store.path, uuid: store.description.uuidText,
      mode: store.description.mode.rawValue, mountPoint: settings.mountPoint,
      counts: JSONValue.fields(of: server.report()))
    status.identity = store.identity
    status.mountDevice = server.mountDevice
    return status
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Store
internal import Volume

// The sockets of the apps that run: each view gets one when the command that starts its app asks for it.

extension Server {
  private var calls: AppCalls {
    AppCalls(
      mountPoint: mountPoint, grants: grants, consents: consents, storage: storage,
      readings: grantReadings, poke: { [appSockets] in appSockets.poke([$0]) })
  }

  /// What follows when the process that has started an app wants the app to have a socket.
  func endpoint(_ call: ControlCall) -> ControlAnswer {
    guard let running = views.latest(of: call.caller.pid, user: call.caller.uid) else {
      return .refusal("this process has started no app", .ESRCH)
    }
    guard isSystem == (call.descriptor == nil) else {
      return .refusal("the request does not match the mode of the store", .EINVAL)
    }
    let group = call.caller.gid
    return .job(.launches) { [self] reporter in
      // Here, since a request that waits for its turn is looked at more than once.
      guard running.takesSocket() else {
        return .failure(ControlFailure("this app has been given its socket already", .EEXIST))
      }
      do throws(Errno) {
        if let mount = try listen(for: running, group, theirs: call.descriptor) { reporter.pass(mount) }
        return .done
      } catch {
        return .failure(ControlFailure("can't create the app's socket: \(error.message)", error))
      }
    }
  }

  /// The listener is ours where users could do something to it that stops us, and else the caller's.
  private func listen(
    for running: RunningView, _ group: UInt32, theirs: SharedFD?
  ) throws(Errno) -> SharedFD? {
    if let theirs {
      let listener = try theirs.use { (fd) throws(Errno) in try fd.duplicated() }
      guard LocalSocket.isListening(listener.fd) else { throw .EINVAL }
      try LocalSocket.neverWait(listener.fd)
      _ = LocalSocket.allowDescriptors(false, to: listener.fd)
      try serve(running, listener)
      return nil
    }
    guard let appPlaces else { throw .ENOTDIR }
    let made = try appPlaces.make(view: running.view.number, for: running.user, group)
    try serve(running, made.listener.use { (fd) throws(Errno) in try fd.duplicated() })
    return made.mount
  }

  private func serve(_ running: RunningView, _ listener: consuming OwnedFD) throws(Errno) {
    let view = running.view.number
    kept?.forget(.appListener, view: view)
    kept?.keep(listener.fd, as: .appListener, view: view)
    do throws(Errno) {
      try appSockets.add(
        running.number, view: view, user: running.user, listener: listener,
        handler: calls.handler(for: running))
    } catch {
      kept?.forget(.appListener, view: view)
      throw error
    }
    // It may have ended before it was known here, and nobody else would tell.
    if !views.has(running.number) { endpointEnded(running) }
  }

  /// The view has ended.
  private func endpointEnded(_ running: RunningView) {
    kept?.forget(.appListener, view: running.view.number)
    appSockets.remove(running.number)
    appPlaces?.remove(view: running.view.number)
  }

  /// No app is served any more.
  func stopAppSockets() {
    appSockets.stop()
    appPlaces?.removeAll()
  }

  /// Serves the socket on that another worker has left.
  func takeOverEndpoint(of running: RunningView, _ listener: FD) throws(Errno) {
    try appSockets.add(
      running.number, view: running.view.number, user: running.user, listener: OwnedFD(owning: listener.raw),
      handler: calls.handler(for: running))
  }
}

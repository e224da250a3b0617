// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import JSON
internal import LinuxIO
internal import Policy
internal import Store
internal import Volume

/// All that answers who asks through the control socket.
struct Services: Sendable {
  let store: Store
  let server: Server
  let apps: AppService
  let launches: LaunchService
  let backups: BackupService
  let files: FilesService
  let log: EventLog
  let settings: Service.Settings

  /// Runs on the control socket's thread: what looks at the disk or takes its time is a job.
  ///
  /// Who has another account's number since the store is served gets to nothing that was decided under it.
  func answer(_ call: ControlCall) -> ControlAnswer {
    let answer = self.answerToHolder(of: call)
    guard call.request.dependsOnDecisions, case .job(let queue, let job) = answer else { return answer }
    return .job(queue) { [apps] reporter in
      if let failure = apps.reasonToDecideNothing(for: call.caller.uid) { return .failure(failure) }
      return job(reporter)
    }
  }

  private func answerToHolder(of call: ControlCall) -> ControlAnswer {
    let queries = AppQueryHandler(store: store, apps: apps, caller: call.caller)
    switch call.request {
    case .status: return .reply(.status(status))
    case .unmount(let lazily):
      guard call.caller.isPrivileged else {
        return .refusal("only root and the daemon's owner may do this")
      }
      return .job(.endings) { _ in self.unmount(lazily: lazily, for: call.caller) }
    case .restart:
      guard call.caller.isPrivileged else {
        return .refusal("only root and the daemon's owner may do this")
      }
      return .job(.endings) { _ in server.restart() }
    case .change(let request):
      // Who reads it would wait for this process, perhaps for as long as something is locked there, and keep
      // the mount meanwhile.
      if isServed(call.descriptor) { return .reply(.failure(.noDirectory)) }
      return apps.answer(request, call)
    case .grant(let request): return server.grants.answer(request, call)
    case .grants(let identifier, let user, let after):
      return .job(.queries) { _ in server.grants.list(identifier, of: user, after: after, for: call) }
    case .run(let identifier, let user): return launches.run(identifier, for: user, call)
    case .backup(let request): return backups.answer(request, call)
    case .files(let request): return files.answer(request, call)
    case .volume(let request):
      if let passed = call.descriptor, isServed(passed) {
        let path = (try? passed.use { (passed) throws(Errno) in try passed.ownPath() }) ?? []
        let shown = String(decoding: path, as: UTF8.self).sanitized
        return .reply(.failure(ControlFailure(VolumeFailure.kind("fuse"), path: shown)))
      }
      return server.volumes.answer(request, call, server.volumeUsers(besides: call.caller.pid)) {
        server.grants.volumeIsEjected($0)
        // With a home that is deleted go its apps, and what was decided about them.
        apps.noteLater()
      }
    case .tell(let identifier, let paths): return launches.tell(identifier, ofOpened: paths, for: call.caller)
    case .running(let user): return .job(.queries) { _ in launches.list(of: user, for: call.caller) }
    case .end(let identifier, let user, let signal):
      return launches.end(identifier, of: user, with: signal, for: call.caller)
    case .ended(let ending): return launches.ended(ending, call)
    case .apps(let user, let after): return .job(.queries) { _ in queries.apps(of: user, after: after) }
    case .app(let identifier, let user):
      return .job(.queries) { _ in queries.app(identifier, of: user) }
    case .path(let place, let identifier, let user):
      return .job(.queries) { _ in queries.path(of: place, identifier, of: user) }
    case .documents(let user, let after):
      return .job(.queries) { _ in queries.documents(of: user, after: after) }
    case .choose(let identifier, let type, let user):
      return .job(.grants) { _ in queries.choose(identifier, for: type, of: user) }
    case .log(let query): return .job(.queries) { _ in log.answer(query, for: call.caller) }
    case .storage(let request):
      return .job(.storage) { reporter in
        server.storage.report(request, by: call.callerIdentity()) { reporter.isCancelled }
      }
    case .roots: return .job(.queries) { _ in apps.roots() }
    case .trace: return .reply(trace(call))
    case .traced:
      return .reply(
        server.pool.traces.end(call.caller.pid, of: call.caller.account).map(ControlReply.requests)
          ?? .failure(ControlFailure("this process is not traced", .ESRCH)))
    // The connection's own business, which has nothing to do with the store.
    case .pass: return .reply(.done)
    case .endpoint: return server.endpoint(call)
    case .consent(let request): return server.consents.answer(request, call)
    case .nextTask(let ofStarted): return server.consents.nextTask(ofStarted: ofStarted, call)
    case .nextReading(let adds): return server.consents.nextReading(adds: adds, call)
    case .answerTask(let number, let answer): return server.consents.answerTask(number, answer, call)
    case .own, .space, .grantChange, .requestConsent, .openPanel, .items, .addPhoto, .awaitOpened:
      return .refusal("only an app can ask this, through the socket of its own")
    }
  }

  /// Whether what a caller has passed on lies in what is served here.
  private func isServed(_ passed: SharedFD?) -> Bool {
    guard let passed else { return false }
    return (try? passed.use { (passed) throws(Errno) in server.serves(passed) }) == true
  }

  private func trace(_ call: ControlCall) -> ControlReply {
    guard let process = call.process else {
      return .failure(ControlFailure("this kernel does not tell who asks; Linux 6.5 does", .EOPNOTSUPP))
    }
    do throws(Errno) {
      try server.pool.traces.begin(call.caller.pid, of: call.caller.account, process)
      return .done
    } catch {
      return .failure(ControlFailure("too many processes are traced; try again later", error))
    }
  }

  /// While apps run the mount is busy; who wants it to go all the same wants them to end.
  private func unmount(lazily: Bool, for caller: ControlCaller) -> ControlReply {
    let backups = server.backups.all.map { "pid \($0.pid)" }
    guard backups.isEmpty || lazily else {
      return .failure(
        ControlFailure(
          "a backup is being made (\(backups.joined(separator: ", "))); wait for its end", .inUse))
    }
    let users = lazily ? [] : server.files.users
    guard users.isEmpty else {
      let list = users.map(\.description.sanitized).joined(separator: "; ")
      return .failure(ControlFailure("a files view is in use: \(list)", .inUse))
    }
    let left = lazily ? [] : server.volumes.notUploaded(after: VolumeService.uploadSeconds)
    guard left.isEmpty else { return .failure(ControlFailure(left.joined(separator: "\n"), .inUse)) }
    server.backups.endAll()
    let running = server.views.all()
    guard !running.isEmpty else { return takeAway(lazily: lazily) }
    let apps = running.map(RunningApp.init)
    guard lazily else {
      return .failure(ControlFailure("apps are running:\n" + running.lines, .appsRun(apps)))
    }
    server.views.endAll(by: caller.uid)
    let reply = takeAway(lazily: true)
    return reply == .done ? .running(apps) : reply
  }

  private func takeAway(lazily: Bool) -> ControlReply {
    do throws(Errno) {
      try server.unmount(lazily: lazily)
      return .done
    } catch {
      return .failure(ControlFailure(error.message, error))
    }
  }

  private var status: DaemonStatus {
    var report = server.report(version: settings.version)
    report.appsUnknown = apps.reasonForNoApps
    var status = DaemonStatus(
      pid: ProcessID.own, store: store.path, uuid: store.description.uuid,
      mode: store.description.mode.rawValue, mountPoint: settings.mountPoint,
      counts: JSONValue.fields(of: report))
    status.identity = store.identity
    status.mountDevice = server.mountDevice
    return status
  }
}

extension ControlRequest {
  /// Whether it gives, or uses, what users have decided, or says what they have done.
  fileprivate var dependsOnDecisions: Bool {
    switch self {
    case .grant, .grants, .run, .consent, .choose, .documents, .log, .volume: true
    default: false
    }
  }
}

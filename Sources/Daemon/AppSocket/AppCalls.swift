// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
internal import Store

/// What apps may ask through their sockets: about themselves, and about what may be told without a look at a
/// disk, or is read on a thread of their users'.
struct AppCalls: Sendable {
  let mountPoint: String
  let grants: GrantService
  let consents: ConsentService
  let storage: StorageService
  let readings: GrantReadings
  /// Has those asked again who wait for something.
  let poke: @Sendable (AppTopic) -> Void

  /// What answers the calls of one view.
  func handler(for running: RunningView) -> AppSocketServer.Handler {
    { request in answer(request, running) }
  }

  private func answer(_ request: ControlRequest, _ running: RunningView) -> AppAnswer {
    switch request {
    case .own: return .reply(.own(OwnApp(running, root: mountPoint)))
    case .app(let identifier, let user):
      guard isOwn(identifier, user, running) else { return Self.others }
      return .reply(.apps([AppDescription(running.launch.app)]))
    case .path(let place, let identifier, let user):
      guard isOwn(identifier, user, running) else { return Self.others }
      return .reply(path(of: place, running.launch))
    case .grants(let identifier, let user, let number):
      guard isOwn(identifier, user, running) else { return Self.others }
      let call = call(of: running, after: number, topic: .view(running.number))
      return .waits(for: .view(running.number)) { call.take() }
    case .grantChange(let version):
      let app = running.launch.app
      let topic = AppTopic.grants(AppOfUser(app.identifier, running.user))
      let call = call(of: running, after: 0, topic: topic)
      return .waits(for: topic) {
        guard call.isBegun || grants.version(app, of: running.user) != version else { return nil }
        return call.take()
      }
    case .consent(.list(let identifier, let user, _)):
      let named = identifier.flatMap { AppIdentifier($0) }
      // A text that is no identifier names another app, too.
      guard (identifier == nil) == (named == nil), isOwn(named, user, running) else { return Self.others }
      return .reply(.consents(consents.statuses(running)))
    case .requestConsent(let service): return consents.request(service, running)
    case .openPanel(let panel): return consents.openPanel(panel, running)
    case .awaitOpened:
      let call = running.opened.wait()
      return .waits(for: .view(running.number)) { call.take().map(ControlReply.opened) }
    case .space: return .waits(for: .space, until: storage.askSpace())
    case .items(let query): return consents.items(query, running)
    case .addPhoto(let photo): return consents.addPhoto(photo, running)
    case .status, .unmount, .restart, .change, .apps, .documents, .choose, .grant, .run, .tell, .backup,
      .files, .volume, .endpoint, .running, .end, .ended, .log, .storage, .trace, .traced, .roots, .pass,
      .nextTask,
      .nextReading, .answerTask, .consent(.decide):
      return .reply(.failure(ControlFailure("an app can't ask for this", .EPERM)))
    }
  }

  /// It is not told whether there is such an app.
  private static let others = AppAnswer.reply(
    .failure(ControlFailure("an app can ask only about itself", .EPERM)))

  private func isOwn(_ identifier: AppIdentifier?, _ user: UInt32?, _ running: RunningView) -> Bool {
    (identifier.map { $0.isSame(as: running.launch.app.identifier) } ?? true)
      && (user ?? running.user) == running.user
  }

  /// Has a page read, and those asked again who wait for the topic.
  private func call(
    of running: RunningView, after number: Int64, topic: AppTopic
  ) -> GrantReadings.Call {
    readings.call(of: running.user) {
      .grants(page(running, after: number))
    } tell: {
      poke(topic)
    }
  }

  private func page(_ running: RunningView, after number: Int64) -> GrantPage {
    let process = try? FD.cwd.openFollowing("/proc/\(running.pid)", pathOnly)
    let group = (try? process?.fd.status()).flatMap { $0.st_uid == running.user ? $0.st_gid : nil }
    var groups = SupplementaryGroups(ofThread: running.pid, uid: running.user, gid: group ?? .max)
    return grants.own(running.launch.app, of: running.user, after: number, group) { gid in
      switch groups.contains(gid) {
      case true?: .member
      case false?: .notMember
      case nil: .unknown
      }
    }
  }

  private func path(of place: AppPlace, _ launch: AppLaunch) -> ControlReply {
    do throws(StoreError) {
      return .path(try launch.path(of: place))
    } catch {
      return .failure(ControlFailure(error))
    }
  }
}

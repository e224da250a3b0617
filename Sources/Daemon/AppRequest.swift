// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// What someone asks about apps: those who ask may not be able to look into the store.
struct AppRequest {
  private let request: ControlRequest
  private let peer: ControlPeer
  private let apps: AppService

  init(_ request: ControlRequest, _ peer: ControlPeer, _ apps: AppService) {
    self.request = request
    self.peer = peer
    self.apps = apps
  }

  func answer(_ store: Store) -> ControlReply {
    guard peer.isMaster || request.user == nil || request.user == peer.uid else {
      return ControlReply(
        ok: false, errno: Errno.EPERM.code, message: "only root may ask about the apps of others")
    }
    do throws(StoreError) {
      return try answer(store, for: peer.isMaster ? request.user : peer.uid)
    } catch {
      return ControlReply(error)
    }
  }

  private func answer(_ store: Store, for user: UInt32?) throws(StoreError) -> ControlReply {
    let questions = AppQuestions(store, try apps.knownRegistry())
    var reply = ControlReply.done
    switch request.verb {
    case .apps: reply.apps = try questions.apps(for: user)
    case .app: reply.apps = [try questions.app(try identifier(), for: user)]
    default:
      guard let place = request.place.flatMap({ AppPlace($0) }) else {
        return ControlReply(ok: false, errno: Errno.EINVAL.code, message: "there is no such place")
      }
      reply.path = try questions.path(of: place, try identifier(), for: user ?? peer.uid) {
        () throws(StoreError) in
        try apps.containers()
      }
    }
    return reply
  }

  private func identifier() throws(StoreError) -> AppIdentifier {
    guard let identifier = request.identifier.flatMap({ AppIdentifier($0) }) else {
      throw .noApp(identifier: request.identifier ?? "")
    }
    return identifier
  }
}

extension ControlReply {
  /// Says why in the words that a command would have.
  init(_ error: StoreError) {
    self.init(ok: false, message: error.description)
    failure = error.kind.rawValue
  }
}

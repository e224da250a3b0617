// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Daemon
internal import LinuxIO
internal import Store

extension AppsAccess {
  /// Has an order carried out; `bundle` is the directory that goes with it.
  func perform(_ order: AppOrder, on bundle: FD?, _ context: Context) throws -> ControlReply {
    let progress = OrderProgress()
    let reply = try ProgressLine.show(context.console, { progress.text }) {
      switch self {
      case .daemon(let client, let status): try Self.ask(client, status, order, bundle, progress)
      case .store(let store): try Self.perform(order, on: bundle, store, progress)
      }
    }
    guard reply.ok else { throw CommandFailure(reply) }
    return reply
  }

  /// The same for one more order: a connection to a daemon ends with its order.
  func renewed(_ context: Context) throws -> AppsAccess {
    guard case .daemon(_, let status) = self else { return self }
    guard let found = DaemonSearch(context).daemon(at: [status.store, status.mountPoint]) else {
      throw CommandFailure(.failed, "the daemon of \(status.store) went away; what it has done is done")
    }
    return .daemon(found.client, found.status)
  }

  private static func ask(
    _ client: ControlClient, _ status: DaemonStatus, _ order: AppOrder, _ bundle: FD?,
    _ progress: OrderProgress
  ) throws -> ControlReply {
    var request = ControlRequest(.order)
    request.order = order
    do throws(Errno) {
      return try client.ask(request, with: bundle) { progress.note($0) }
    } catch {
      throw CommandFailure(
        .failed,
        "the daemon of \(status.store) went away (\(error.message)); "
          + "what it was stopped in is ended or taken "
          + "back when the store is next mounted")
    }
  }

  /// Without a daemon we are the only ones who use the store.
  private static func perform(
    _ order: AppOrder, on bundle: FD?, _ store: Store, _ progress: OrderProgress
  ) throws -> ControlReply {
    let registry = try Registry(of: store)
    let work = AppWork(store, registry)
    try work.recover()
    let wait = InstallWait(progress: { progress.note(ControlProgress($0)) })
    return work.perform(order, on: bundle, asking: .ourselves, wait)
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Store

/// The way to the apps of a store: the daemon that has it mounted, or the store itself.
///
/// So the daemon stays the only one who changes the store while it runs, and whoever may not look into the store can
/// still ask.
enum AppsAccess {
  case daemon(ControlClient, DaemonStatus)
  case store(Store)

  static let storeOption = CommandDescription.Option(
    name: "store", value: "STORE", help: "the store, or where it is mounted (default: as for 'insula mount')")

  /// Finds the store that is meant; one that no daemon has is opened, for writing if that is asked for.
  ///
  /// A user without a store of their own means the machine's.
  static func find(_ named: String?, writing: Bool, _ context: Context) throws -> AppsAccess {
    let search = DaemonSearch(context)
    let paths =
      named.map { [context.absolute($0)] }
      ?? [context.defaultMountPoint, context.defaultStore].map(context.absolute)
    if let found = search.daemon(at: paths) { return .daemon(found.client, found.status) }
    let path = paths.last ?? context.defaultStore
    do throws(StoreError) {
      return .store(try Store(opening: path, writing ? .exclusive : .inspect))
    } catch {
      guard named == nil, !context.isRoot, case .notThere = error else { throw error }
      let others = context.controlPlace.daemons()
      guard let only = others.first else { throw error }
      guard others.count == 1 else {
        let places = others.map(\.status.mountPoint).joined(separator: ", ")
        throw CommandFailure(.usage, "say which one is meant, with --store: \(places)")
      }
      return .daemon(only.client, only.status)
    }
  }

  /// Has an order carried out; `bundle` is the directory that goes with it.
  func perform(_ order: AppOrder, on bundle: FD?, _ context: Context) throws -> ControlReply {
    let reply: ControlReply
    switch self {
    case .daemon(let client, let status):
      var request = ControlRequest(.apps)
      request.order = order
      let progress = OrderProgress()
      let asked = request
      reply = try ProgressLine.show(context.console, { progress.text }) {
        do throws(Errno) {
          return try client.ask(asked, with: bundle) { progress.note($0) }
        } catch {
          throw CommandFailure(
            .failed,
            "the daemon of \(status.store) went away (\(error.message)); 'insula check' says what it has left"
          )
        }
      }
    case .store(let store):
      let registry = try Registry(state: store.state, path: store.path + "/state")
      let work = AppWork(store, registry, watch: NobodyWatches())
      try work.recover()
      let progress = OrderProgress()
      reply = ProgressLine.show(context.console, { progress.text }) {
        work.perform(
          order, on: bundle, asking: .ourselves, InstallWait(progress: { progress.note(ControlProgress($0)) })
        )
      }
    }
    guard reply.ok else { throw CommandFailure(reply) }
    return reply
  }

  /// Where a path of the tree can be seen.
  func place(of path: String) -> String {
    switch self {
    case .daemon(_, let status): "\(status.mountPoint)/\(path)"
    case .store(let store): "\(store.path)/tree/\(path)"
    }
  }
}

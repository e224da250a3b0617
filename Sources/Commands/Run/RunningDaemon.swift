// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// The daemon that is asked to run an app.
struct RunningDaemon {
  private var client: ControlClient
  private let status: DaemonStatus

  /// Finds it; an app can't run from a store that nobody serves.
  init(_ named: String?, _ context: Context) throws {
    switch try AppsAccess.find(named, context) {
    case .daemon(let client, let status): (self.client, self.status) = (client, status)
    case .store(let store):
      throw CommandFailure(
        .notMounted,
        "the store \(store.path) is not mounted, and apps run from a mount; 'insula mount \(store.path)'"
      )
    }
  }

  var isRootless: Bool { status.mode == StoreDescription.Mode.rootless.rawValue }
  var store: String { status.store }

  /// For how long others of the same user may be before us.
  private static let patience = 3000

  /// Has the app's view served; over a connection of ours, or one whose mount comes back.
  mutating func launch(
    _ identifier: AppIdentifier, for user: UInt32, over connection: SharedFD?
  ) throws -> (LaunchPlan, SharedFD?) {
    var request = ControlRequest(.run)
    request.identifier = identifier.text
    request.user = user
    for _ in 0..<Self.patience {
      let reply = try ask(request, connection)
      if reply.failure == ControlReply.crowded {
        usleep(10_000)
        client = try connect()
        continue
      }
      guard reply.ok else { throw CommandFailure(reply) }
      guard let plan = reply.launch else { break }
      return (plan, client.takePassed())
    }
    throw CommandFailure(.failed, "the daemon of \(status.store) gave an answer that makes no sense")
  }

  private func connect() throws -> ControlClient {
    do throws(Errno) { return try client.again() } catch { throw gone(error) }
  }

  private func gone(_ error: Errno) -> CommandFailure {
    CommandFailure(.failed, "the daemon of \(status.store), pid \(status.pid), went away: \(error.message)")
  }

  private func ask(_ request: ControlRequest, _ connection: SharedFD?) throws -> ControlReply {
    do throws(Errno) {
      guard let connection else { return try client.ask(request, with: nil) { _ in } }
      return try connection.use { (fd) throws(Errno) in try client.ask(request, with: fd) { _ in } }
    } catch {
      throw gone(error)
    }
  }
}

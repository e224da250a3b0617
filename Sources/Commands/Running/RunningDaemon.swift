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
    self = try AppsAccess.find(named, context).runner()
  }

  init(_ client: ControlClient, _ status: DaemonStatus) {
    self.client = client
    self.status = status
  }

  var isRootless: Bool { status.mode == StoreDescription.Mode.rootless.rawValue }
  var store: String { status.store }
  var mountPoint: String { status.mountPoint }

  /// For how long others of the same user may be before us.
  private static let patience = 3000

  /// Has the app's view served; over a connection of ours, or one whose mount comes back.
  mutating func launch(
    _ identifier: AppIdentifier, for user: UInt32, over connection: SharedFD?
  ) throws -> (LaunchPlan, SharedFD?) {
    let reply = try askInTurn(.run(identifier, user: user), connection)
    let plan = try reply.orFailure { if case .launch(let plan) = $0 { plan } else { nil } }
    return (plan, client.takePassed())
  }

  /// The same for the view of a backup.
  mutating func beginBackup(
    _ request: BackupRequest, over connection: SharedFD?
  ) throws -> SharedFD? {
    let reply = try askInTurn(.backup(request), connection)
    _ = try reply.orFailure { if case .backup(let plan) = $0 { plan } else { nil } }
    return client.takePassed()
  }

  /// Has a view of the caller's documents mounted.
  mutating func mountFiles(_ request: FilesRequest) throws {
    let reply = try askInTurn(.files(request), nil)
    _ = try reply.orFailure { if case .done = $0 { true } else { nil } }
  }

  /// Tells an app of the caller's that runs of what they have opened; returns the paths of which it was not
  /// told, or nil if it was told of nothing.
  mutating func tell(_ identifier: AppIdentifier, ofOpened paths: [String]) throws -> [String]? {
    guard let parts = paths.isEmpty ? [[]] : ControlRequest.parts(ofOpened: paths) else { return nil }
    var told = 0
    for part in parts {
      // It may end meanwhile, and an earlier daemon does not know how to tell it.
      guard let reply = try? askInTurn(.tell(identifier, ofOpened: part), nil), reply == .done else { break }
      told += 1
    }
    return told == 0 ? nil : Array(parts[told...].joined())
  }

  /// Asks about volumes; what comes back are those that it was about.
  mutating func volumes(
    _ request: VolumeRequest, on directory: SharedFD? = nil
  ) throws -> [VolumeDescription] {
    let reply = try askInTurn(.volume(request), directory)
    return try reply.orFailure { if case .volumes(let volumes) = $0 { volumes } else { nil } }
  }

  /// Ejects a volume; one that is not there is no failure.
  ///
  /// It is not looked for before: a list does not wait for what a killed command has asked for, and an
  /// eject does.
  mutating func ejectIfThere(_ name: String, force: Bool) throws {
    let reply = try askInTurn(.volume(.eject(name: name, force: force)), nil)
    if case .failure(let failure) = reply, failure.cause == .errno(.ENOENT) { return }
    _ = try reply.orFailure { if case .volumes = $0 { true } else { nil } }
  }

  /// The volume of that name: of a user, or one's own or everyone's rather than another user's.
  mutating func volume(named name: String, of owner: UInt32? = nil, for user: UInt32) throws
    -> VolumeDescription
  {
    let named = try volumes(.list).filter { volume in
      volume.name.hasSameBytes(as: name) && (owner == nil || volume.owner == owner)
    }
    guard let volume = named.first(where: { $0.owner == nil || $0.owner == user }) ?? named.first else {
      throw CommandFailure(.failed, "there is no volume \(name.sanitized); see 'insula volume list'")
    }
    return volume
  }

  /// Asks who is in the network.
  mutating func network() throws -> NetworkDescription {
    let reply = try askInTurn(.volume(.network), nil)
    return try reply.orFailure { if case .network(let network) = $0 { network } else { nil } }
  }

  private mutating func askInTurn(_ request: ControlRequest, _ connection: SharedFD?) throws -> ControlReply {
    var reply = try ask(request, connection)
    for _ in 0..<Self.patience where reply.isCrowded {
      // The daemon keeps no list of those it has turned away, and tells none of them when it has room.
      usleep(10_000)
      client = try connect()
      reply = try ask(request, connection)
    }
    return reply
  }

  /// Where it is, for conversations later on.
  func address() throws -> ControlAddress {
    do throws(Errno) { return try client.address() } catch { throw gone(error) }
  }

  /// Has the app that was just launched get a socket through which it can ask the daemon; false, with a
  /// message, if it goes without.
  mutating func giveSocket(in place: ViewPlace, _ console: Console) throws -> Bool {
    var reply = try askForSocket(place)
    // A daemon that takes the place of this one has the view, and may not have heard of the socket.
    for _ in 0..<Self.patience where reply?.isCrowded ?? true {
      usleep(10_000)
      client = try connect()
      reply = try askForSocket(place)
    }
    switch reply {
    case .done?:
      if let mount = client.takePassed() { try place.attach(socket: mount) }
      return true
    case .failure(let failure)?:
      console.note("run: the app can't ask Insula for anything: \(failure.message)")
    default: console.note("run: the app can't ask Insula for anything: the daemon does not answer")
    }
    return false
  }

  /// Nil if the daemon has gone before it answered.
  private func askForSocket(_ place: ViewPlace) throws -> ControlReply? {
    do throws(Errno) {
      guard isRootless else { return try client.ask(.endpoint, with: nil) }
      try? FD.cwd.remove("\(place.socket)/\(AppSocket.name)", directory: false)
      // Ours is closed when this ends; the daemon's is another one.
      let listener = try place.listen()
      return try client.ask(.endpoint, with: listener.fd)
    } catch .ECONNABORTED {
      return nil
    } catch {
      throw gone(error)
    }
  }

  private func connect() throws -> ControlClient {
    do throws(Errno) { return try client.again() } catch { throw gone(error) }
  }

  private func gone(_ error: Errno) -> CommandFailure {
    CommandFailure(
      .failed, "lost the connection to the daemon of \(status.store), pid \(status.pid): \(error.message)")
  }

  private mutating func ask(_ request: ControlRequest, _ connection: SharedFD?) throws -> ControlReply {
    do throws(Errno) {
      guard let connection else {
        let answer = try client.askAgain(request, milliseconds: -1)
        client = answer.client
        return answer.reply
      }
      return try connection.use { (fd) throws(Errno) in try client.ask(request, with: fd) }
    } catch {
      throw gone(error)
    }
  }
}

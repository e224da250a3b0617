// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import CLinux
internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// The way to what a store knows of its apps: its daemon while one runs, else the store itself.
///
/// A daemon answers users who may not look into the store.
enum AppsAccess {
  case daemon(ControlClient, DaemonStatus)
  case store(Store)

  static let storeOption = CommandDescription.Option(
    name: "store", value: "STORE", help: "a store or its mount point (default: yours, or else the machine's)")
  static let userOption = CommandDescription.Option(
    name: "user", value: "NAME", help: "for that user (default: yourself); root only")

  /// Finds it.
  ///
  /// `writing` says whether the store itself must be ours alone if no daemon has it.
  static func find(_ named: String?, writing: Bool = false, _ context: Context) throws -> AppsAccess {
    let paths: [String]
    if let named {
      paths = [context.absolute(named)]
    } else {
      paths = [context.defaultMountPoint, context.defaultStore].map(context.absolute)
    }
    if let found = DaemonSearch(context).daemon(at: paths) { return .daemon(found.client, found.status) }
    let path = paths.last ?? context.defaultStore
    do throws(StoreError) {
      let store = try Store(opening: path, .inspect)
      if let holder = store.holder { throw StoreError.inUse(path: path, holder: holder) }
      return .store(writing ? try Store(opening: path, .exclusive) : store)
    } catch {
      // Who has no store of their own means the machine's.
      if named == nil, case .notThere = error,
        let machine = DaemonSearch(context).daemon(at: [context.machineStore])
      {
        return .daemon(machine.client, machine.status)
      }
      throw error
    }
  }

  /// Where the tree is to be seen.
  var root: String {
    switch self {
    case .daemon(_, let status): status.mountPoint
    case .store(let store): store.path + "/tree"
    }
  }

  /// The number of a user who was named; nil for who runs this.
  static func user(_ name: String?, _ context: Context) throws -> UInt32? {
    guard let name else { return nil }
    guard let account = Account.named(name) else { throw StoreError.unknownAccount(name: name) }
    guard context.isRoot || account.uid == context.uid else {
      throw CommandFailure(.notPermitted, "only root may do this for another user; leave '--user' out")
    }
    return account.uid
  }

  /// All apps that a user has; root may leave open whose.
  func apps(for user: UInt32?, _ context: Context) throws -> [AppDescription] {
    let user = user ?? (context.isRoot ? nil : context.uid)
    switch self {
    case .store(let store): return try AppQuestions(store).apps(for: user)
    case .daemon: return try ask(.apps, user: user).apps ?? []
    }
  }

  func app(_ identifier: AppIdentifier, for user: UInt32?, _ context: Context) throws -> AppDescription {
    let user = user ?? (context.isRoot ? nil : context.uid)
    switch self {
    case .store(let store): return try AppQuestions(store).app(identifier, for: user)
    case .daemon:
      guard let app = try ask(.app, identifier, user: user).apps?.first else { throw Self.noAnswer }
      return app
    }
  }

  /// Where a place of an app is, below ``root``; makes what is missing of its containers.
  func path(
    of place: AppPlace, _ identifier: AppIdentifier, for user: UInt32?, _ context: Context
  ) throws -> String {
    switch self {
    case .daemon:
      guard let path = try ask(.path, identifier, place, user: user).path else { throw Self.noAnswer }
      return path
    case .store(let store):
      return try AppQuestions(store).path(of: place, identifier, for: user ?? context.uid) {
        () throws(StoreError) in
        try Containers(store, Registry(of: store))
      }
    }
  }

  static let noAnswer = CommandFailure(.failed, "the daemon gave an answer that makes no sense")

  private func ask(
    _ verb: ControlRequest.Verb, _ identifier: AppIdentifier? = nil, _ place: AppPlace? = nil, user: UInt32?
  ) throws -> ControlReply {
    guard case .daemon(let client, let status) = self else { throw Self.noAnswer }
    var request = ControlRequest(verb)
    request.identifier = identifier?.text
    request.place = place?.word
    request.user = user
    let reply = try client.ask(request, of: status)
    if reply.failure == StoreError.Kind.noApp.rawValue, let identifier {
      throw StoreError.noApp(identifier: identifier.text)
    }
    return try reply.orFailure()
  }
}

extension ControlClient {
  /// Asks the daemon that described itself so; where it has too many requests of this user, again after a
  /// moment.
  func ask(_ request: ControlRequest, of status: DaemonStatus) throws -> ControlReply {
    do throws(Errno) {
      var reply = try ask(request, milliseconds: 30_000)
      for _ in 0..<1000 where reply.failure == ControlReply.crowded {
        usleep(30_000)
        reply = try again().ask(request, milliseconds: 30_000)
      }
      return reply
    } catch {
      throw CommandFailure(
        .failed, "the daemon of \(status.store), pid \(status.pid), does not answer: \(error.message)")
    }
  }
}

extension ControlReply {
  /// The reply, unless it says that something failed.
  func orFailure() throws -> ControlReply {
    guard ok else { throw CommandFailure(self) }
    return self
  }
}

extension CommandDescription {
  /// An identifier that a person gave.
  func identifier(_ text: String?) throws(UsageError) -> AppIdentifier {
    guard let text, let identifier = AppIdentifier(text) else {
      throw error("'\(text ?? "")' is no identifier, such as com.example.editor; 'insula apps' lists them")
    }
    return identifier
  }
}

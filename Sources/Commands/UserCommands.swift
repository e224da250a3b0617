// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

private let storeOption = CommandDescription.Option(
  name: "store", value: "STORE", help: "the store (default: as for 'insula mount')")

/// `insula user add`.
struct UserAddCommand: Command {
  static let description = CommandDescription(
    name: "user add", summary: "Makes the home of an account: /Users/NAME with its standard directories.",
    arguments: [.init(name: "NAME", help: "an account of this machine", isRequired: true, kind: .account)],
    options: [storeOption],
    details: ["Works whether the store is mounted or not. What exists is never changed."],
    examples: ["sudo insula user add anna"])

  private let name: String
  private let store: String?

  init(_ arguments: ParsedArguments) {
    name = arguments.argument(0) ?? ""
    store = arguments.value("store")
  }

  func run(in context: Context) throws -> ExitCode {
    try HomesAccess.open(store, writing: true, context) { homes in
      try homes.add(name)
    }
    context.console.print("Made the home of \(name).")
    return .ok
  }
}

/// `insula user list`.
struct UserListCommand: Command {
  static let description = CommandDescription(
    name: "user list", summary: "Lists the homes.", options: [storeOption, CommandDescription.json])

  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) {
    store = arguments.value("store")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let homes = try HomesAccess.open(store, writing: false, context) { homes in try homes.list() }
    if json {
      context.console.print(json: homes)
    } else if homes.isEmpty {
      context.console.print("There are no homes yet; 'insula user add NAME' makes one.")
    } else {
      let rows = homes.map { home in
        let state = home.missing.isEmpty ? "whole" : "lacks " + home.missing.joined(separator: ", ")
        return [home.name, home.account ?? "uid \(home.uid)", state]
      }
      context.console.print(table: [["HOME", "OWNER", "STATE"]] + rows)
    }
    return .ok
  }
}

/// `insula user remove`.
struct UserRemoveCommand: Command {
  static let description = CommandDescription(
    name: "user remove", summary: "Removes a home and everything in it.",
    arguments: [.init(name: "NAME", help: "whose home", isRequired: true, kind: .account)],
    options: [
      .init(name: "delete-home", help: "yes, delete all files in it; nothing is removed without this"),
      storeOption,
    ],
    details: ["The account itself stays; it is the machine's, not insula's."])

  private let name: String
  private let store: String?
  private let isMeant: Bool

  init(_ arguments: ParsedArguments) {
    name = arguments.argument(0) ?? ""
    store = arguments.value("store")
    isMeant = arguments.has("delete-home")
  }

  func run(in context: Context) throws -> ExitCode {
    try HomesAccess.open(store, writing: false, context) { try $0.require(name) }
    guard isMeant else {
      throw CommandFailure(
        .failed,
        "removing the home of \(name) deletes every file in it, and nothing was removed; "
          + "if that is meant: 'insula user remove \(name) --delete-home'")
    }
    let home = try HomesAccess.open(store, writing: false, context) { try $0.list() }.first {
      $0.name == name
    }
    try removeApps(context)
    try HomesAccess.open(store, writing: true, context) { try $0.remove(name) }
    if let home { try takeBackGrants(of: home.uid, context) }
    context.console.print("Removed the home of \(name).")
    return .ok
  }

  /// What someone without a home has granted, no app could use.
  private func takeBackGrants(of user: UInt32, _ context: Context) throws {
    let access = try AppsAccess.find(store ?? context.defaultStore, writing: true, context)
    guard try !access.grants(nil, of: user, context).isEmpty else { return }
    var order = GrantOrder(.revoke, nil)
    order.user = user
    _ = try access.perform(order)
  }

  /// Nobody can remove what is sealed, and nothing may be noted as installed in a home that is no more.
  private func removeApps(_ context: Context) throws {
    let access = try AppsAccess.find(store ?? context.defaultStore, writing: true, context)
    for app in try access.apps(for: nil, context) where app.home == name {
      guard let identifier = AppIdentifier(app.identifier) else { continue }
      var order = AppOrder(.uninstall, home: name)
      order.identifier = identifier
      _ = try access.renewed(context).perform(order, on: nil, context)
    }
  }
}

/// Finds the way to the homes of a store.
enum HomesAccess {
  /// Runs `body` on the homes: in the store itself, or through the mount while a daemon has it.
  ///
  /// So the daemon stays the only one who changes the store while it runs, and what the kernel has cached
  /// stays true.
  static func open<Result>(
    _ named: String?, writing: Bool, _ context: Context, _ body: (Homes) throws -> Result
  ) throws -> Result {
    let path = context.store(named)
    if named == nil, path != context.absolute(context.defaultStore) {
      return try body(ofMachine(path, context))
    }
    let looking = try Store(opening: path, .inspect)
    if let holder = looking.holder {
      guard !holder.mountPoint.isEmpty else { throw StoreError.inUse(path: path, holder: holder) }
      return try body(throughMount(holder, of: looking))
    }
    let store = writing ? try Store(opening: path, .exclusive) : looking
    return try body(
      Homes(tree: store.tree, path: path + "/tree", mode: store.description.mode))
  }

  /// Who has no store of their own means the machine's, which they reach through its mount alone.
  private static func ofMachine(_ path: String, _ context: Context) throws -> Homes {
    guard let found = DaemonSearch(context).daemon(at: [path]) else {
      throw CommandFailure(
        .notMounted, "the machine's store \(path) is not mounted; root mounts it with 'sudo insula mount'")
    }
    let root = try FD.cwd.open(found.status.mountPoint, O_RDONLY | O_DIRECTORY)
    return try Homes(tree: root.fd, path: found.status.mountPoint, mode: .system, isMounted: true)
  }

  private static func throughMount(_ holder: StoreHolder, of store: Store) throws -> Homes {
    let path = holder.mountPoint
    guard let mount = try MountTable.current().top(at: path), mount.type == MountPoint.filesystemType else {
      throw CommandFailure(
        .busy,
        "the store \(store.path) is in use by \(holder), but that mount can't be seen from here; "
          + "run this where it can (another mount namespace?), or unmount it first")
    }
    let root = try FD.cwd.open(path, O_RDONLY | O_DIRECTORY)
    return try Homes(tree: root.fd, path: path, mode: store.description.mode, isMounted: true)
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Daemon
internal import LinuxIO
internal import Policy
internal import Store

/// `insula user add`.
struct UserAddCommand: Command {
  static let description = CommandDescription(
    name: "user add", summary: "Creates the home of an account: /Users/NAME with its standard directories.",
    arguments: [.init(name: "NAME", help: "an account of this machine", isRequired: true, kind: .account)],
    options: [
      .init(
        name: "adopt",
        help: "give the account a home that is there already: put there from outside, or left by somebody"),
      .init(
        name: "home", value: "SOURCE",
        help: "have it in a directory, on a disk, on a server (URL) or in the joined 'network'"),
      HomesAccess.storeOption,
    ],
    details: [
      """
      This works whether the store is mounted or not. Without --adopt, existing directories are never changed.
      """,
      """
      With --home, the home is SOURCE/NAME, and is made there or completed; the store must be mounted. SOURCE
      must be root's (yours, for a store of your own), a directory closed to others ('chmod 700'), and keep
      owners, ACLs and flags.
      """,
      """
      --adopt requires that the store is not mounted. What belonged to the former owner of the home becomes
      the account's; what is missing of the standard directories is made, and their modes and ACLs are put
      right.
      Nothing is removed or overwritten. Something else in the place of a standard directory, something
      mounted in the home, and a home of somebody who has an account here are refused before anything is
      changed. What belongs to others, devices, files that have other names outside of the home, and what
      'chattr +i' protects stay as they are and are listed. Other programs in the home lose their
      set-user-ID and set-group-ID bits and their capabilities. ACL entries that name the former owner's
      number stay. Apps in the home keep their data; what the former owner has allowed apps and the volumes
      they have added are forgotten. What they have thrown away, and what was removed for them, is set aside
      in the store for root.
      """,
    ],
    examples: ["sudo insula user add anna", "sudo insula user add anna --home UUID=1c2e-..."])

  private let name: String
  private let isAdopting: Bool
  private let source: String?
  private let store: String?

  init(_ arguments: ParsedArguments) throws(UsageError) {
    name = arguments.argument(0) ?? ""
    isAdopting = arguments.has("adopt")
    source = arguments.value("home")
    if isAdopting, source != nil {
      throw Self.description.error(
        "'--adopt' is for a home in the store; '--home' takes over what is SOURCE/NAME")
    }
    store = arguments.value("store")
  }

  func run(in context: Context) throws -> ExitCode {
    if isAdopting { return try adopt(context) }
    if let source { return try addElsewhere(source, context) }
    try HomesAccess.open(store, writing: false, context) { try $0.requireFree(name) }
    try forgetFormer(context)
    try HomesAccess.open(store, writing: true, context) { homes in
      try homes.add(name)
    }
    context.console.say("Created the home of \(name).")
    return .ok
  }

  /// Forgets what somebody has decided who had the account's number before, and whose home went by another
  /// way than 'insula user remove', or not to the end of that.
  private func forgetFormer(_ context: Context) throws {
    // Nobody else makes homes in a store of several users.
    guard context.isRoot, let account = Account.named(name) else { return }
    let access = try AppsAccess.find(store, writing: true, context)
    guard let aside = try access.forget(FormerUser(account.uid, successor: name)) else { return }
    tell(aside, of: account.uid, in: try access.openedStore().path, context)
  }

  /// Says what became of what a former holder of the account's number may have had.
  private func tell(_ aside: [LeftBehind], of user: UInt32, in store: String, _ context: Context) {
    context.console.note(
      "what was decided and logged under uid \(user) before is forgotten, since it may be a former holder's")
    for moved in aside.prefix(20) {
      context.console.note("\(moved.reason.sanitized) is in \(store.sanitized)/\(moved.path) now")
    }
    guard !aside.isEmpty else { return }
    context.console.note(
      "give that to its owner, or remove it with 'rm -r'; 'insula check' lists all that lies there")
  }

  private func addElsewhere(_ source: String, _ context: Context) throws -> ExitCode {
    try forgetFormer(context)
    var daemon = try RunningDaemon(store, context)
    let network = source == "network" ? try JoinedNetwork(of: store, context) : nil
    let named = network?.homes ?? source
    let (found, opened) = try daemon.source(named: named, context)
    _ = try daemon.volumes(.add(VolumeWish(found, in: .users, name: name)), on: opened)
    network?.noteHome(name, isThere: true, daemon)
    context.console.say("\(name) has the home \(daemon.mountPoint)/Users/\(name), in \(named.sanitized).")
    return .ok
  }

  private func adopt(_ context: Context) throws -> ExitCode {
    let store = try Store(opening: context.store(store), named: context.namedStore(store), .exclusive)
    let homes = try Homes(tree: store.tree, path: store.path + "/tree", mode: store.description.mode)
    var handler: AppRequestHandler?
    if let registry = try Registry.existing(of: store) {
      // What is being done to an app of the home's is done for its former owner.
      let found = AppRequestHandler(store, registry)
      for failure in try found.recover() { context.console.note("\(failure)") }
      handler = found
    }
    let adoption = try homes.adopt(name, in: store) { (owner) throws(StoreError) in
      guard let handler else { return }
      let former = FormerUser(owner, successor: name, isHomeBack: true)
      let forgotten = try handler.forgetNow(former, by: .ourselves)
      guard forgotten.parts.contains(.decisions) else { return }
      tell(forgotten.aside, of: owner, in: store.path, context)
    }
    if !adoption.aside.isEmpty { tell(adoption.aside, of: adoption.previous, in: store.path, context) }
    for line in adoption.lines(context.names) { context.console.say(line) }
    context.console.say("\(name) has the home \(store.path)/tree/Users/\(name) now.")
    return .ok
  }
}

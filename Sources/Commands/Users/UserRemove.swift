// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Daemon
internal import LinuxIO
internal import Policy
internal import Store

/// `insula user remove`.
struct UserRemoveCommand: Command {
  static let description = CommandDescription(
    name: "user remove", summary: "Removes a home and everything in it.",
    arguments: [.init(name: "NAME", help: "the account whose home it is", isRequired: true, kind: .account)],
    options: [
      .init(
        name: "delete-home",
        help: "confirm that all files in the home are to be deleted; without this nothing is removed"),
      .init(
        name: "ejected",
        help: "forget the home of that name that was ejected, for good; its files stay where they are"),
      .init(
        name: "source", value: "SOURCE",
        help: "with --ejected: of several homes of that name the one that was SOURCE/NAME"),
      HomesAccess.storeOption,
    ],
    details: [
      "The account itself is kept; it belongs to the machine.",
      """
      Of a home that was ejected ('insula volume eject Users/NAME'), apps, containers and removed containers
      stay noted until it comes back. If it will not, --ejected forgets them. What is in another home of that
      name stays. Of several that were ejected, --source says which one is meant; what may be of another one's
      owner is forgotten with the last of them.
      """,
    ])

  private let name: String
  private let store: String?
  private let isMeant: Bool
  private let isEjected: Bool
  private let source: String?

  init(_ arguments: ParsedArguments) throws(UsageError) {
    name = arguments.argument(0) ?? ""
    store = arguments.value("store")
    isMeant = arguments.has("delete-home")
    isEjected = arguments.has("ejected")
    source = arguments.value("source")
    if source != nil, !isEjected { throw Self.description.error("'--source' goes with '--ejected' alone") }
  }

  func run(in context: Context) throws -> ExitCode {
    if isEjected {
      try AppsAccess.find(store ?? context.defaultStore, writing: true, context)
        .forgetEjectedHome(name, from: source)
      context.console.say("The ejected home of \(name) is forgotten.")
      return .ok
    }
    try HomesAccess.open(store, writing: false, context) { try $0.require(name) }
    guard isMeant else {
      throw CommandFailure(
        .failed,
        "nothing was removed; removing the home of \(name) deletes every file in it; "
          + "if you want that: 'insula user remove \(name) --delete-home'")
    }
    let (home, path) = try HomesAccess.open(store, writing: false, context) { homes in
      (homes.home(name), "\(homes.path)/\(name)")
    }
    try refuseUse(of: home, at: path, context)
    var removed: [String] = []
    var failure: (any Error)?
    do {
      if try isElsewhere(context) {
        // What was removed in it goes with it; the daemon may refuse that.
        try removeElsewhere(context)
      } else {
        try remove(home, at: path, &removed, context)
      }
    } catch {
      failure = error
    }
    if let failure, isStillThere(context) { throw words(for: failure, removed) }
    // It is no home any more, even if not all that was in it could be deleted.
    if let home { try forget(home, context) }
    if let failure { throw failure }
    context.console.say("Removed the home of \(name).")
    return .ok
  }

  /// The store, if another home of that name was ejected: what is not in this one is noted of that one.
  private func storeWithEjectedHome(_ access: any StoreAccess) throws -> Store? {
    let store = try access.openedStore()
    guard let registry = try Registry.existing(of: store) else { return nil }
    return try registry.isInEjectedHome("Users/\(name)/.") ? store : nil
  }

  /// Whether the home has its place still, as far as that can be told.
  private func isStillThere(_ context: Context) -> Bool {
    (try? HomesAccess.open(store, writing: false, context) { $0.has(name) }) ?? true
  }

  /// Says of a removal that has ended before the home was taken from its place what it has done by then.
  private func words(for failure: any Error, _ removed: [String]) -> any Error {
    guard !removed.isEmpty else { return failure }
    let apps = removed.prefix(20).map(\.sanitized).joined(separator: ", ")
    let more = removed.count > 20 ? " and \(removed.count - 20) more" : ""
    let failure = CommandFailure(failure)
    return CommandFailure(
      failure.code,
      "the home of \(name) is still there, but these of its apps are removed: \(apps)\(more); "
        + "run 'insula user remove \(name) --delete-home' again to go on: \(failure.message)",
      lines: failure.lines)
  }

  /// Removes a home that lies in the store; nobody but root gets into it meanwhile.
  private func remove(
    _ home: Homes.Home?, at path: String, _ removed: inout [String], _ context: Context
  ) throws {
    // The numbers of accounts may have changed: what is in the home is noted for its owner first.
    try prepare(deletingRemoved: false, context)
    let closed = try HomesAccess.open(store, writing: true, context) { try $0.close(name) }
    do {
      // Somebody may have come before it was closed.
      try refuseUse(of: home, at: path, context, tells: false)
      try removeApps(&removed, context)
      try prepare(deletingRemoved: true, context)
    } catch {
      if let closed { try HomesAccess.open(store, writing: true, context) { try $0.reopen(closed) } }
      throw error
    }
    try HomesAccess.open(store, writing: true, context) { try $0.remove(name, closed: closed) }
  }

  /// Nothing is removed while somebody uses the home: they would write into what is just being emptied, and
  /// removal would end in the middle.
  private func refuseUse(
    of home: Homes.Home?, at path: String, _ context: Context, tells: Bool = true
  ) throws {
    try refuseMounts(in: path, of: home, context, tells: tells)
    if let home {
      let access = try AppsAccess.find(store ?? context.defaultStore, writing: true, context)
      let running = try access.running(for: home.uid).filter { $0.user == home.uid }
      if !running.isEmpty {
        throw CommandFailure(
          .busy, "nothing was removed: apps of \(name) are running; end them first ('insula kill')",
          lines: running.prefix(20).map { "  \($0.identifier.sanitized), pid \($0.pid)" })
      }
    }
    let found = MountUsers.all(in: realPath(path) ?? path)
    let users = found.users
    guard users.isEmpty else {
      throw CommandFailure(
        .busy, "nothing was removed: the home of \(name) is in use; end these processes first",
        lines: users.prefix(20).map { "  \("\($0)".sanitized)" })
    }
    // Any user can have such a process, also one who wants to keep another's home.
    for words in found.hidden.prefix(20) where tells {
      context.console.inform("\(words.sanitized), and may use the home")
    }
  }

  /// Nothing is removed of a home in which root or its owner has mounted something: what is in there is
  /// somebody else's, and removal would end in the middle.
  ///
  /// What anybody else has mounted over it in a namespace of their own keeps no home: any user can do that.
  /// The kernel takes such a mount away with the directory, and removal deletes nothing that is in it.
  private func refuseMounts(
    in path: String, of home: Homes.Home?, _ context: Context, tells: Bool
  ) throws(CommandFailure) {
    let found: MountsEverywhere
    do throws(Errno) {
      found = try MountTable.mountsEverywhere(in: realPath(path) ?? path, of: home?.uid)
    } catch {
      throw CommandFailure(error, "can't tell what is mounted in \(path.sanitized): \(error.message)")
    }
    if let first = found.binding.first {
      throw CommandFailure(
        .busy,
        "nothing was removed: something is mounted in the home of \(name); unmount it first "
          + "('umount \(first.mountPoint.sanitized)')",
        lines: found.binding.prefix(20).map { "  \(Self.words(for: $0))" })
    }
    for mount in found.others.prefix(20) where tells {
      context.console.inform("\(Self.words(for: mount)), is another user's, and goes with the home")
    }
    for pid in found.hidden.prefix(20) where tells {
      context.console.inform("can't tell what pid \(pid) has mounted in a mount namespace of its own")
    }
  }

  private static func words(for mount: MountTable.Found) -> String {
    mount.mountPoint.sanitized + (mount.process.map { ", in the mount namespace of pid \($0)" } ?? "")
  }

  /// Whether it lies on a volume that is there.
  private func isElsewhere(_ context: Context) throws -> Bool {
    guard var daemon = try? RunningDaemon(store, context) else { return false }
    return try volume(of: &daemon) != nil
  }

  /// Removes it with its apps, and with its volume.
  private func removeElsewhere(_ context: Context) throws {
    var daemon = try RunningDaemon(store, context)
    guard let home = try volume(of: &daemon) else { return }
    _ = try daemon.volumes(.eject(name: home.treePath, force: false, deletesHome: true))
    if let network = try? JoinedNetwork(of: store, context), home.path == network.homes {
      network.noteHome(name, isThere: false, daemon)
    }
  }

  private func volume(of daemon: inout RunningDaemon) throws -> VolumeDescription? {
    try daemon.volumes(.list).first(where: { $0.treePath.hasSameBytes(as: "Users/\(name)") })
  }

  /// Has what is in the home be noted for its owner, or deletes what was removed from it, and nothing that
  /// its owner has removed in another one.
  private func prepare(deletingRemoved: Bool, _ context: Context) throws {
    let access = try AppsAccess.find(store ?? context.defaultStore, writing: true, context)
    // Without a registry nothing is noted.
    guard try Registry.existing(of: access.openedStore()) != nil else { return }
    try access.prepareRemoval(ofHome: name, deletingRemoved: deletingRemoved)
  }

  /// What someone without a home has decided must not count for the next holder of the number.
  private func forget(_ home: Homes.Home, _ context: Context) throws {
    do {
      let former = FormerUser(home.uid, removedHome: name, isHomeAlone: !mayBeGone(home.uid))
      try AppsAccess.find(store ?? context.defaultStore, writing: true, context).forget(former)
    } catch {
      throw CommandFailure(
        .failed,
        "the home of \(name) is removed, but what its owner has allowed apps could not be forgotten: "
          + "\(CommandFailure(error).message); the next 'insula user add' for that user ID does it")
    }
  }

  /// Whether the owner of the home may be somebody who is gone: its account, or nobody's number.
  ///
  /// A home may be another living account's: it was put there from outside, or the login has another name by
  /// now. What that account has decided stays.
  private func mayBeGone(_ owner: UInt32) -> Bool {
    owner != 0 && (Account.named(name)?.uid == owner || Account.numbered(owner) == nil)
  }

  /// Nobody can remove what is sealed, and nothing may be noted as installed in a home that is no more.
  ///
  /// Their data in this home goes with it. What they have in another home of the owner's stays there.
  private func removeApps(_ removed: inout [String], _ context: Context) throws {
    let access = try AppsAccess.find(store ?? context.defaultStore, writing: true, context)
    let other = try storeWithEjectedHome(access)
    for app in try access.apps(for: nil) where app.home?.hasSameBytes(as: name) == true {
      if let other, (try? other.tree.status(at: app.path)) == nil { continue }
      guard let identifier = AppIdentifier(app.identifier) else { continue }
      _ = try access.uninstall(identifier, of: .user(name), keepingData: true)
      removed.append(app.identifier)
    }
  }
}

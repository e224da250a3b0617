// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO
internal import Policy
internal import Store

/// The way to what a store knows of its apps: the one place that chooses between a daemon and the store
/// itself.
enum AppsAccess {
  static let storeOption = CommandDescription.Option(
    name: "store", value: "STORE",
    help: "a store or its mount point (default: your own store, or else the machine's)",
    kind: .directory)
  static let userOption = CommandDescription.Option(
    name: "user", value: "NAME", help: "act for this user (default: yourself); root only",
    kind: .account)

  /// Finds it.
  ///
  /// `writing` says whether the store itself must be ours alone if no daemon has it.
  static func find(
    _ named: String?, writing: Bool = false, _ context: Context
  ) throws -> any StoreAccess {
    if let socket = context.appSocket { return try AppAccess(socket, named, context) }
    let paths = DaemonSearch.paths(of: named, context)
    if let found = DaemonSearch(context).daemon(at: paths) {
      context.console.detail(found.status.words)
      return DaemonAccess(found, context)
    }
    let path = paths.last ?? context.defaultStore
    do throws(StoreError) {
      let way = named.map(context.unresolved) ?? path
      let store = try Store(opening: path, named: way, .inspect)
      if let holder = store.holder { throw StoreError.inUse(path: path, holder: holder) }
      context.console.detail("the store \(path) is not mounted, so it is opened by this command itself")
      guard writing else { return DirectAccess(store: store, context: context) }
      return DirectAccess(store: try store.openedAgain(.exclusive), context: context)
    } catch {
      // Who has no store of their own means the machine's.
      if named == nil, case .notThere = error,
        let machine = DaemonSearch(context).daemon(at: [context.machineStore])
      {
        context.console.detail(machine.status.words)
        return DaemonAccess(machine, context)
      }
      throw error
    }
  }

  /// The number of a user who was named; nil for who runs this.
  static func user(_ name: String?, _ context: Context) throws -> UInt32? {
    guard let name else { return nil }
    guard let account = Account.named(name) else { throw StoreError.unknownAccount(name: name) }
    guard context.isRoot || account.uid == context.uid else {
      throw CommandFailure(.notPermitted, "only root may do this for another user; leave out '--user'")
    }
    return account.uid
  }
}

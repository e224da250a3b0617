// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Store

/// Finds the way to the homes of a store.
enum HomesAccess {
  static let storeOption = CommandDescription.Option(
    name: "store", value: "STORE", help: "the store or its mount point (default: as for 'insula mount')",
    kind: .directory)

  /// Runs `body` on the homes: in the store itself, or through the mount while a daemon has it.
  ///
  /// So the daemon stays the only one who changes the store while it runs, and what the kernel has cached
  /// stays true.
  static func open<Result>(
    _ named: String?, writing: Bool, _ context: Context, _ body: (Homes) throws -> Result
  ) throws -> Result {
    let meant = context.store(named)
    if named == nil, meant != context.absolute(context.defaultStore) {
      return try body(ofMachine(meant, context))
    }
    let looking =
      named == nil ? try Store(opening: meant, .inspect) : try DaemonSearch(context).store(at: meant)
    let path = looking.path
    context.console.detail(
      looking.holder.map { "going through the mount of \(path) at \($0.mountPoint)" }
        ?? "the store \(path) is not mounted, so it is opened by this command itself")
    if let holder = looking.holder {
      guard !holder.mountPoint.isEmpty else { throw StoreError.inUse(path: path, holder: holder) }
      return try body(throughMount(holder, of: looking, context))
    }
    let store = writing ? try looking.openedAgain(.exclusive) : looking
    return try body(
      Homes(tree: store.tree, path: path + "/tree", mode: store.description.mode))
  }

  /// Who has no store of their own means the machine's, which they reach through its mount alone.
  private static func ofMachine(_ path: String, _ context: Context) throws -> Homes {
    guard let found = DaemonSearch(context).daemon(at: [path]) else {
      throw CommandFailure(
        .notMounted, "the machine's store \(path) is not mounted; root can mount it with 'sudo insula mount'")
    }
    let root = try FD.cwd.open(found.status.mountPoint, O_RDONLY | O_DIRECTORY)
    return try Homes(tree: root.fd, path: found.status.mountPoint, mode: .system, isMounted: true)
  }

  /// Only through a mount of the store's owner, and of the store's daemon as far as that answers: in another
  /// mount namespace something else may be mounted at the same path.
  private static func throughMount(
    _ holder: StoreHolder, of store: Store, _ context: Context
  ) throws -> Homes {
    let path = holder.mountPoint
    let daemon = store.identity.flatMap { context.controlPlace.daemon(of: $0) }
    if let mount = DaemonSearch.mount(at: path), mount.server == ProcessID.user,
      daemon.flatMap({ $0.status.mountDevice }).map({ $0 == mount.device.description }) ?? true
    {
      let root = try FD.cwd.open(path, O_RDONLY | O_DIRECTORY)
      if try root.fd.deviceInMemory() == mount.device {
        return try Homes(tree: root.fd, path: path, mode: store.description.mode, isMounted: true)
      }
    }
    throw CommandFailure(
      .busy,
      "the store \(store.path) is in use by \(holder), but that mount is not visible from here; "
        + "run this command where it is (another mount namespace?), or unmount the store first")
  }
}

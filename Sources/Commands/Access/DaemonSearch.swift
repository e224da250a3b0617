// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// Finds the daemon that a person means by a mount point or a store.
struct DaemonSearch {
  typealias Found = (client: ControlClient, status: DaemonStatus)

  private let place: ControlPlace

  init(_ context: Context) { self.init(context.controlPlace) }

  init(_ place: ControlPlace) { self.place = place }

  /// The paths of the store or mount that a person named, or meant by naming none.
  static func paths(of named: String?, _ context: Context) -> [String] {
    (named.map { [$0] } ?? [context.defaultMountPoint, context.defaultStore]).map(context.absolute)
  }

  /// The running daemon of that store or mount, for a command that needs one.
  static func require(_ named: String?, _ context: Context) throws(CommandFailure) -> Found {
    let paths = paths(of: named, context)
    guard let found = DaemonSearch(context).daemon(at: paths) else {
      throw CommandFailure(
        .notMounted,
        "no insula store is mounted at \(paths.last ?? ""), or its daemon does not answer; "
          + "'insula status' says more, and 'insula mount' mounts a store")
    }
    context.console.detail(found.status.words)
    return found
  }

  /// The running daemon that is mounted at one of these absolute paths, or serves the store there.
  ///
  /// Who is meant is known by objects and not by names: the directory of the store, the device of the mount.
  /// What is mounted is not looked at, since its daemon may not answer.
  func daemon(at paths: [String]) -> Found? {
    for path in paths where Self.mount(at: path) == nil {
      if let identity = StoreIdentity(at: path), let found = place.daemon(of: identity) { return found }
      // Before all others are asked, of which one may not answer.
      let isFirst = { (other: String) in paths.first.map(other.hasSameBytes) ?? false }
      if let found = daemon(inStoreAt: path), isFirst(path) || isFirst(found.status.mountPoint) {
        return found
      }
    }
    let isThere = paths.contains { Self.mount(at: $0) != nil }
    let running = place.daemons(isThere: isThere) { status in
      paths.first.map { Self.isMeant(status, by: $0) } ?? false
    }
    for path in paths {
      if let found = running.first(where: { Self.isMeant($0.status, by: path) }) { return found }
      guard let mount = Self.mount(at: path) else {
        if let found = daemon(inStoreAt: path) { return found }
        continue
      }
      // What a mount is called only helps to find a daemon, which says itself where it is mounted.
      guard mount.server == ProcessID.user, mount.source.begins(with: "/"),
        let found = daemon(inStoreAt: mount.source), Self.isMeant(found.status, by: path)
      else { continue }
      return found
    }
    return nil
  }

  /// A user's daemon without a runtime directory listens in its store.
  private func daemon(inStoreAt path: String) -> Found? {
    (try? Store(opening: path, .inspect)).flatMap { place.daemon(in: $0) }
  }

  /// A mounted store with the UUID of this one: one of them is a copy of the other.
  func twin(of store: Store) -> DaemonStatus? {
    let uuid = store.description.uuid
    func isTwin(_ other: DaemonStatus) -> Bool {
      other.uuid == uuid && (other.identity ?? StoreIdentity(at: other.store)) != store.identity
    }
    return place.daemons(upTo: isTwin).map(\.status).first(where: isTwin)
  }

  private static func isMeant(_ status: DaemonStatus, by path: String) -> Bool {
    if status.mountPoint.hasSameBytes(as: path) {
      guard let mount = mount(at: path), let device = status.mountDevice else { return true }
      // Another namespace may have another mount at that path.
      return mount.device.description == device
    }
    if let mount = mount(at: path) { return mount == movedMount(of: status) }
    guard let identity = StoreIdentity(at: path) else { return status.store.hasSameBytes(as: path) }
    // One of an earlier version, which only says what its store was called.
    return status.identity == nil && StoreIdentity(at: status.store) == identity
  }

  /// The mount of a daemon: where it has mounted, or where that directory has been moved to.
  static func mount(of status: DaemonStatus) -> MountEntry? {
    mount(at: status.mountPoint, of: status) ?? movedMount(of: status)
  }

  private static func mount(at path: String, of status: DaemonStatus) -> MountEntry? {
    mount(at: path).flatMap { mount in
      status.mountDevice == nil || mount.device.description == status.mountDevice ? mount : nil
    }
  }

  /// The mount of a daemon whose directory has been moved.
  private static func movedMount(of status: DaemonStatus) -> MountEntry? {
    guard let device = status.mountDevice, let table = try? MountTable.current(),
      let known = table.entries.first(where: { $0.device.description == device }),
      known.isServed,
      let mount = table.mount(of: known.device, madeAt: status.mountPoint)
    else { return nil }
    return mount.mountPoint.hasSameBytes(as: status.mountPoint) ? nil : mount
  }

  /// Opens the store that somebody means by an absolute path, to look at it: the one that lies there, or the
  /// one whose mount that is.
  ///
  /// The source of a mount is a text that the mounting user chooses, and it may be the path of another store.
  /// So the daemon of the mount, known by the device, says which store that is; or the store says, in its
  /// lock, that it is mounted there. And the mount must be our own.
  func store(at path: String) throws -> Store {
    guard let mount = Self.mount(at: path) else { return try Store(opening: path, .inspect) }
    guard let server = mount.server, server == ProcessID.user else {
      let name = mount.server.map { Account.numbered($0)?.name ?? "uid \($0)" } ?? "another user"
      throw CommandFailure(
        .notPermitted,
        "the mount at \(path.sanitized) is of \(name.sanitized), who decides what it shows; "
          + "use it as that user, or name the store itself")
    }
    if let status = daemon(at: [path])?.status, status.mountDevice == mount.device.description {
      let store = try Store(opening: status.store, .inspect)
      if store.identity == status.identity { return store }
    }
    if let store = try? Store(opening: mount.source, .inspect),
      store.holder?.mountPoint.hasSameBytes(as: path) == true
    {
      return store
    }
    throw CommandFailure(
      .failed,
      "can't tell which store is mounted at \(path.sanitized), since its daemon does not say so; "
        + "name the store itself, or unmount it first ('insula unmount \(path.sanitized)')")
  }

  /// Our mount on top at a path, if there is one, its daemon dead or alive.
  static func mount(at path: String) -> MountEntry? {
    guard let mount = (try? MountTable.current())?.top(at: path), mount.isServed
    else { return nil }
    return mount
  }

  /// Our mount that an absolute path without links is in, if there is one.
  static func mount(containing path: String) -> MountEntry? {
    let mounts = (try? MountTable.current())?.entries.filter {
      "\(path)/".utf8.starts(with: "\($0.mountPoint)/".utf8) || $0.mountPoint == "/"
    }
    // Of those at one place the last is on top.
    let deepest = mounts?.map(\.mountPoint.utf8.count).max()
    let top = mounts?.last { $0.mountPoint.utf8.count == deepest }
    return top?.isServed == true ? top : nil
  }

  /// The mount of a store whose daemon does not answer, if there is one.
  ///
  /// It is called like the store, as others may call theirs; but it is of the store's owner.
  static func mount(ofStore path: String) -> MountEntry? {
    guard let table = try? MountTable.current() else { return nil }
    let mounts = table.entries.filter {
      $0.isServed && $0.source.hasSameBytes(as: path)
    }
    // Only then is the path looked at; a mount point is not, since its daemon may have stopped.
    guard !mounts.isEmpty, table.top(at: path)?.isServed != true,
      let store = try? FD.cwd.openFollowing(path, pathOnly | O_DIRECTORY),
      let owner = try? store.fd.status().st_uid
    else { return nil }
    return mounts.last { $0.server == owner }
  }
}

extension DaemonStatus {
  /// Whom a command asks, for those who want to know.
  var words: String { "asking the daemon of \(store), which is mounted at \(mountPoint) (pid \(pid))" }
}

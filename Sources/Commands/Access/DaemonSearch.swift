// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO
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
      if let found = daemon(inStoreAt: path), path == paths.first || found.status.mountPoint == paths.first {
        return found
      }
    }
    let running = place.daemons { status in paths.first.map { Self.isMeant(status, by: $0) } ?? false }
    for path in paths {
      if let found = running.first(where: { Self.isMeant($0.status, by: path) }) { return found }
      let candidate = Self.store(at: path)
      guard candidate.hasPrefix("/"), let found = daemon(inStoreAt: candidate),
        candidate == path || Self.isMeant(found.status, by: path)
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
    if status.mountPoint == path {
      guard let mount = mount(at: path), let device = status.mountDevice else { return true }
      // Another namespace may have another mount at that path.
      return mount.device.description == device
    }
    guard mount(at: path) == nil else { return false }
    guard let identity = StoreIdentity(at: path) else { return status.store == path }
    // One of an earlier version, which only says what its store was called.
    return status.identity == nil && StoreIdentity(at: status.store) == identity
  }

  /// The store that is mounted at a path, or else that path.
  static func store(at path: String) -> String { mount(at: path)?.source ?? path }

  /// Our mount on top at a path, if there is one, its daemon dead or alive.
  static func mount(at path: String) -> MountEntry? {
    guard let mount = (try? MountTable.current())?.top(at: path), mount.type == MountPoint.filesystemType
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
    return top?.type == MountPoint.filesystemType ? top : nil
  }

  /// Our mount of a store, if there is one.
  static func mount(ofStore path: String) -> MountEntry? {
    (try? MountTable.current())?.entries.last { $0.type == MountPoint.filesystemType && $0.source == path }
  }
}

extension DaemonStatus {
  /// Whom a command asks, for those who want to know.
  var words: String { "asking the daemon of \(store), which is mounted at \(mountPoint) (pid \(pid))" }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO
internal import Store

/// Finds the daemon that a person means by a mount point or a store.
struct DaemonSearch {
  typealias Found = (client: ControlClient, status: DaemonStatus)

  private let place: ControlPlace

  init(_ context: Context) { place = context.controlPlace }

  /// The running daemon that is mounted at one of these absolute paths, or serves the store there.
  func daemon(at paths: [String]) -> Found? {
    let running = place.daemons()
    for path in paths {
      if let found = running.first(where: { $0.status.mountPoint == path || $0.status.store == path }) {
        return found
      }
      // A user's daemon without a runtime directory listens in its store, which is what was mounted.
      let source = Self.mount(at: path)?.source
      for candidate in [path, source].compactMap({ $0 }) where candidate.hasPrefix("/") {
        guard let store = try? Store(opening: candidate, .inspect), let found = place.daemon(of: store)
        else { continue }
        return found
      }
    }
    return nil
  }

  /// Our mount on top at a path, if there is one, its daemon dead or alive.
  static func mount(at path: String) -> MountEntry? {
    guard let mount = (try? MountTable.current())?.top(at: path), mount.type == MountPoint.filesystemType
    else { return nil }
    return mount
  }

  /// Our mount of a store, if there is one.
  static func mount(ofStore path: String) -> MountEntry? {
    (try? MountTable.current())?.entries.last { $0.type == MountPoint.filesystemType && $0.source == path }
  }
}

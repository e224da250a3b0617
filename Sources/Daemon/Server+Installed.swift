// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
internal import Store
internal import Volume

extension Server {
  /// Tells the volume what is installed, and whose containers there are, before anyone can look.
  ///
  /// Where the registry can't be read, whatever lies where apps do may be one.
  static func noteApps(
    of store: Store, _ source: GrantService.RegistrySource, in volume: Volume, _ shapes: AppShapes
  ) throws {
    do {
      if let registry = try source(false) { try noteApps(of: store, registry, in: volume, shapes) }
    } catch StoreError.appsUnknown {
      volume.appsAreUnknown()
    }
  }

  private static func noteApps(
    of store: Store, _ registry: Registry, in volume: Volume, _ shapes: AppShapes
  ) throws {
    let versions = try registry.systemVersions()
    do throws(Errno) {
      // Where a process was stopped while it replaced the system domain, it is one or the other.
      try volume.noteSystem(roots: [versions.current.root] + (versions.next.map { [$0.root] } ?? []))
    } catch {
      throw ServeFailure.tree(path: store.path, error)
    }
    for bundle in try registry.bundles() {
      // It is noted when its home appears.
      if let home = Homes.name(in: bundle.path), store.liesElsewhere(home) { continue }
      if (try? store.tree.status(at: bundle.path)) == nil, try registry.isInEjectedHome(bundle.path) {
        continue
      }
      do throws(Errno) {
        try volume.noteBundle(at: bundle.path, seals: bundle.seals)
      } catch {
        DaemonLog.write(
          "/\(bundle.path): the app is not where it was installed (\(error.message)); see 'insula check'")
      }
    }
    try shapes.note(registry)
  }

  /// What was noted of apps when the tree was mounted is noted of a home's when that appears.
  static func noteApps(
    ofHome home: String, _ registry: GrantService.RegistrySource, in volume: Volume, _ shapes: AppShapes
  ) {
    do {
      guard let registry = try registry(false) else { return }
      for bundle in try registry.bundles() where Homes.name(in: bundle.path)?.hasSameBytes(as: home) == true {
        do throws(Errno) { try volume.noteBundle(at: bundle.path, seals: bundle.seals) } catch {
          DaemonLog.write("/\(bundle.path): the app is not where it was installed (\(error.message))")
        }
      }
      try shapes.note(registry, in: home)
    } catch {
      DaemonLog.write("can't find out which apps are in the home of \(home.sanitized): \(error)")
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
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
    var homes: [UInt32: [UnnotedApps]] = [:]
    let bundles = Dictionary(grouping: try registry.bundles()) { Homes.name(in: $0.path).map(ExactText.init) }
    for (home, bundles) in bundles {
      guard let home = home?.text else {
        Self.note(bundles, of: store, registry, in: volume)
        continue
      }
      // It is noted when its home appears.
      if store.liesElsewhere(home) { continue }
      let owner = try store.owner(ofHomeIn: "Users/\(home)/", registry)
      volume.beginNotingApps()
      homes[owner ?? 0, default: []].append(UnnotedApps(home: home, bundles: bundles))
    }
    // A user may keep a look into their home waiting: others wait for that only for a moment.
    let isServing = Mutex(false)
    let begun = UserWork.ofProcess.begin(for: homes.keys, as: "apps") { [homes] user in
      for unnoted in homes[user] ?? [] {
        var bundles = unnoted.bundles
        // When this has waited, they may be others.
        _ = try? store.tree.openDirectory(at: "Users/\(unnoted.home)/Applications")
        if isServing.withLock({ $0 }), let all = try? registry.bundles() {
          bundles = all.filter { Homes.name(in: $0.path)?.hasSameBytes(as: unnoted.home) == true }
        }
        Self.note(bundles, of: store, registry, in: volume)
        volume.appsAreNoted(inHome: unnoted.home, isLate: isServing.withLock { $0 })
      }
    }
    for user in begun.wait(milliseconds: HomeWork.patienceMilliseconds) {
      DaemonLog.write("the apps of user \(user) can't be looked at yet; they are read-only until they are")
    }
    isServing.withLock { $0 = true }
    try shapes.note(registry)
  }

  /// Bundles in a home of the store.
  private struct UnnotedApps: Sendable {
    let home: String
    let bundles: [(path: String, seals: [[UInt8]])]
  }

  private static func note(
    _ bundles: [(path: String, seals: [[UInt8]])], of store: Store, _ registry: Registry, in volume: Volume
  ) {
    for bundle in bundles {
      // What is not there may be in another home of that name, which was ejected.
      let isOne = try? registry.isInEjectedHome(bundle.path)
      if isOne == true, (try? store.tree.status(at: bundle.path)) == nil { continue }
      do throws(Errno) {
        try volume.noteBundle(at: bundle.path, seals: bundle.seals)
      } catch {
        DaemonLog.write(
          "/\(bundle.path): the app is not where it was installed (\(error.message)); see 'insula check'")
      }
    }
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

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO
package import Policy
package import Store

/// A place whose contents belong to an app: a bundle or a container.
package struct StoragePlace: Equatable, Sendable {
  /// Below the root of the tree.
  package let path: String
  package let zone: StorageZone
  package let owner: StorageOwner
  /// Which directory it must be, where that was noted.
  private let identity: ObjectIdentity?
  /// What tells it from any other, also from one that was at the same path before.
  package let key: String
  /// The app that it is purged for; nil for a place that never is, or without regard to an app.
  package let app: AppIdentifier?
  /// The removed container that it is, which lies outside of the tree.
  package private(set) var removed: RemovedContainer?

  init(_ app: InstalledApp) {
    path = app.path
    zone = .part(.bundle)
    owner = StorageOwner(user: nil)
    identity = nil
    key = "bundle \(app.path)"
    self.app = nil
  }

  init(_ record: ContainerRecord, name: String?) {
    path = record.path
    switch record.kind {
    case .data: zone = .container
    case .group: zone = .part(.groups)
    case .cloud: zone = .part(.icloud)
    }
    owner = StorageOwner(user: record.user, app: record.kind == .data ? record.identifier : nil, name: name)
    identity = record.identity
    key = record.uuid
    app = record.kind == .data ? record.identifier : nil
  }

  init(_ removed: RemovedContainer) {
    let record = removed.container
    path = record.path
    zone = .removed
    owner = StorageOwner(user: record.user)
    identity = record.identity
    key = "removed \(record.uuid)"
    app = nil
    self.removed = removed
  }

  /// Counts what is there; nothing where it is not the place that was made.
  package func measure(in store: Store, pause: () throws(Errno) -> Void) throws(Errno) -> StorageUsage {
    let opened: OwnedFD?
    if let removed {
      opened = store.openDirectory(of: removed)
    } else {
      opened = try? store.tree.openDirectory(at: path)
    }
    guard let directory = opened, let status = try? directory.fd.status() else { return StorageUsage() }
    if let user = owner.user, status.st_uid != user { return StorageUsage() }
    if let identity, identity != ObjectIdentity(status, of: directory.fd) { return StorageUsage() }
    return try StorageUsage(of: directory.fd, as: zone, owner, pause: pause)
  }
}

/// What a place was found to take, and when, in seconds since 1970.
package struct MeasuredUsage: Codable, Equatable, Sendable {
  package let usage: StorageUsage
  package let time: Int64

  package init(_ usage: StorageUsage, time: Int64) {
    self.usage = usage
    self.time = time
  }
}

/// Finds out how much room apps take.
package struct StorageMeter {
  /// Gives what a place takes; throws EINTR where nobody wants to know it any more.
  package typealias Measure = (StoragePlace) throws(Errno) -> MeasuredUsage

  private let store: Store
  private let registry: Registry?
  /// Whether an app runs for a user.
  private let runs: (AppIdentifier, UInt32) -> Bool
  private let now: Int64

  /// A store without a registry has no apps.
  package init(
    _ store: Store, _ registry: Registry?, now: Int64,
    runs: @escaping (AppIdentifier, UInt32) -> Bool = { _, _ in false }
  ) {
    self.store = store
    self.registry = registry
    self.runs = runs
    self.now = now
  }

  /// Everything that there is to be measured.
  package func places() throws(StoreError) -> [StoragePlace] {
    guard let registry else { return [] }
    let apps = try registry.apps()
    let names = Dictionary(apps.map { ($0.identifier.text, $0.name) }) { first, _ in first }
    return apps.map { StoragePlace($0) }
      + (try registry.containers(isMarkedForRemoval: false)).map {
        StoragePlace($0, name: names[$0.identifier.text])
      }
      + (try registry.removedContainers()).map { StoragePlace($0) }
  }

  /// What is asked; users see their own, root everybody's.
  ///
  /// `purgeable` gives what a purge would free of everybody's; nil where that is not known beyond the report.
  package func report(
    _ request: StorageRequest, by caller: CallerIdentity, rule: PurgeRule, purgeable: (() -> Int64)? = nil,
    measure: Measure
  ) throws(AppFailure) -> StorageReport {
    let isPrivileged = caller.uid == 0 || caller.uid == ProcessID.user
    let user = request.user ?? (isPrivileged ? nil : caller.uid)
    guard isPrivileged || user == caller.uid else {
      throw .notAllowed(doing: "look at what others have in", path: "\(store.path)/tree/Users")
    }
    var sums = StorageSums(user: user, now: now)
    do throws(StoreError) {
      let apps = try registry?.apps(for: user).filter { request.app?.isSame(as: $0.identifier) ?? true }
      let containers = try registry?.containers(user: user, isMarkedForRemoval: false)
      try add(apps ?? [], containers ?? [], request.app, to: &sums, measure)
      for removed in try store.removedContainers(ownedBy: user, registry)
      where request.app?.isSame(as: removed.container.identifier) ?? true {
        sums.add(removed) { (place) throws(Errno) in try measure(place) }
      }
    } catch {
      throw .store(error)
    }
    if let app = request.app, sums.items.isEmpty { throw .store(.noApp(identifier: app.text)) }
    if sums.isCancelled { throw .cancelled }
    let disk: DiskSpace
    do throws(Errno) { disk = try store.tree.diskSpace() } catch {
      throw .failed(doing: "find out how full the disk is of", path: store.path, errno: error)
    }
    let items = sums.finished(runs)
    let freed = purgeable?() ?? items.reduce(0) { $0.adding(clamped: $1.purgeable) }
    return StorageReport(
      items, used: sums.used, available: AvailableSpace(disk, purgeable: freed, rule: rule))
  }

  private func add(
    _ apps: [InstalledApp], _ containers: [ContainerRecord], _ wanted: AppIdentifier?,
    to sums: inout StorageSums, _ measure: Measure
  ) throws(StoreError) {
    for app in apps { sums.add(app) { (place) throws(Errno) in try measure(place) } }
    for record in containers where !sums.isCancelled {
      let users = apps.filter { app in
        guard app.user == nil || app.user == record.user else { return false }
        return switch record.kind {
        case .data: app.identifier.isSame(as: record.identifier)
        case .group: app.groups.contains { $0.isSame(as: record.identifier) }
        case .cloud: app.clouds.contains { $0.isSame(as: record.identifier) }
        }
      }
      // What belongs to an app that is asked about, or to none.
      guard !users.isEmpty || wanted?.isSame(as: record.identifier) ?? true else { continue }
      let lastRun = record.kind == .data ? store.lastRun(of: record.path) : nil
      sums.add(record, of: users, lastRun: lastRun) { (place) throws(Errno) in try measure(place) }
    }
  }
}

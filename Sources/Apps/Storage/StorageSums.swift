// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Store

/// What was measured so far, for each app and user.
struct StorageSums {
  private struct Key: Hashable {
    let app: String
    let user: UInt32?
  }

  fileprivate struct Entry {
    var item: StorageReport.Item
    var installed: Int64?
    var hasContainer = false
    var purgeable: Int64 = 0
    /// What removed containers take, which goes whether the app runs or not.
    var removed: Int64 = 0
  }

  private let user: UInt32?
  private let now: Int64
  private var entries: [Key: Entry] = [:]
  /// What several apps share is in it once.
  private(set) var used = StorageSizes()
  private(set) var isCancelled = false

  var items: [StorageReport.Item] { entries.values.map(\.item) }

  init(user: UInt32?, now: Int64) {
    self.user = user
    self.now = now
  }

  /// Adds a bundle; one that is there for all is everybody's, unless only one user is asked about.
  mutating func add(_ app: InstalledApp, _ measure: StorageMeter.Measure) {
    let key = Key(app: app.identifier.text.lowercased(), user: app.user ?? user)
    entry(key, app.identifier, app) { $0.installed = app.installed }
    guard let found = measured(StoragePlace(app), measure) else { return }
    used.add(found.usage.sizes)
    entries[key]?.add(found)
  }

  /// Adds a container of apps, or one that no app has any more.
  mutating func add(
    _ record: ContainerRecord, of apps: [InstalledApp], lastRun: Int64?, _ measure: StorageMeter.Measure
  ) {
    let app = record.kind == .data ? apps.first : nil
    guard let found = measured(StoragePlace(record, name: app?.name), measure) else { return }
    used.add(found.usage.sizes)
    let users: [InstalledApp?] = apps.isEmpty ? [nil] : apps
    for app in users {
      let identifier = app?.identifier ?? record.identifier
      let key = Key(app: identifier.text.lowercased(), user: record.user)
      entry(key, identifier, app) { entry in
        entry.add(found)
        guard record.kind == .data else { return }
        entry.hasContainer = true
        entry.installed = app?.installed
        entry.item.lastRun = lastRun
        entry.purgeable = found.usage.purgeable.bytes
      }
    }
  }

  /// Adds a container that was removed.
  mutating func add(_ removed: RemovedContainer, _ measure: StorageMeter.Measure) {
    guard let found = measured(StoragePlace(removed), measure) else { return }
    used.add(found.usage.sizes)
    let record = removed.container
    let key = Key(app: record.identifier.text.lowercased(), user: record.user)
    entry(key, record.identifier, nil) { entry in
      entry.add(found)
      entry.removed = entry.removed.adding(clamped: found.usage.purgeable.bytes)
    }
  }

  private mutating func measured(
    _ place: StoragePlace, _ measure: StorageMeter.Measure
  ) -> MeasuredUsage? {
    guard !isCancelled else { return nil }
    do throws(Errno) { return try measure(place) } catch {
      isCancelled = true
      return nil
    }
  }

  private mutating func entry(
    _ key: Key, _ identifier: AppIdentifier, _ app: InstalledApp?, _ change: (inout Entry) -> Void
  ) {
    var entry =
      entries[key]
      ?? Entry(
        item: StorageReport.Item(
          app: identifier.text, name: app?.name ?? identifier.text, user: key.user, isInstalled: app != nil))
    change(&entry)
    entries[key] = entry
  }

  /// The items, with what follows from all that was added.
  func finished(_ runs: (AppIdentifier, UInt32) -> Bool) -> [StorageReport.Item] {
    let used = Set(entries.filter { $0.value.hasContainer }.keys.map(\.app))
    return entries.map { key, entry in
      var item = entry.item
      if let identifier = AppIdentifier(item.app), let user = key.user {
        item.isRunning = runs(identifier, user)
      }
      // An app that runs keeps everything.
      item.purgeable = (item.isRunning ? 0 : entry.purgeable).adding(clamped: entry.removed)
      let isOthers = key.user == nil && used.contains(key.app)
      if let installed = entry.installed, !item.isRunning, !isOthers,
        StorageAdvice.isUnused(
          lastRun: item.lastRun, installed: installed, hasContainer: entry.hasContainer, now: now)
      {
        item.advice.append(StorageAdvice(.unused, bytes: item.sizes.total))
      }
      return item
    }
  }
}

extension StorageSums.Entry {
  fileprivate mutating func add(_ found: MeasuredUsage) {
    item.sizes.add(found.usage.sizes)
    item.advice += found.usage.advice
    item.measured = min(item.measured, found.time)
    item.isComplete = item.isComplete && found.usage.isComplete
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import JSON
internal import LinuxIO
package import Policy
internal import Synchronization

// What is being done to apps. An intent is noted, then the tree is changed by one rename, then the app is
// noted and the intent is taken off, both at once: so the registry and the tree can differ only while there
// is an intent that says in what.

extension Registry {
  /// What this process is at: the registry's path and the intent's number.
  ///
  /// Nobody else changes a store meanwhile, so any other intent is of a process that was stopped, or could
  /// not be ended.
  ///
  /// The number of one that is done is the next one's, perhaps before whoever did it has left: so it is kept
  /// with what is done.
  private static let live = Mutex<[String: TreeIntent]>([:])

  private static func key(_ number: Int64, _ database: borrowing Database) -> String {
    "\(number) \(database.path)"
  }

  /// Notes what is about to be done; only one thing at a time is done to an app, and at a path.
  package func begin(_ intent: TreeIntent) throws(StoreError) -> NotedIntent {
    let lost = try lostApps(inTheWayOf: intent)
    return try change { (database) throws(StoreError) in
      guard let encoded = try? JSONText.encode(intent) else {
        throw .registryFailed(
          doing: "record a change in", path: database.path,
          message: "the change to \(intent.app.identifier.text) can't be recorded")
      }
      let text = String(decoding: encoded, as: UTF8.self)
      for other in try Self.intents(in: database)
      where other.intent.app.identifier.isSame(as: intent.app.identifier)
        && other.intent.app.user == intent.app.user
        || !other.intent.paths.isDisjoint(with: intent.paths)
      {
        throw .appBusy(identifier: other.intent.app.identifier.text)
      }
      try Self.check(intent, in: database, besides: lost)
      try database.run("INSERT INTO intents (intent) VALUES (?)", .text(text))
      guard let noted = try Self.intents(in: database).last else {
        throw .registryDamaged(path: database.path, what: "an intent was lost")
      }
      // One that is not kept in the end has a number that the next one gets.
      let key = Self.key(noted.number, database)
      Self.live.withLock { $0[key] = intent }
      return noted
    }
  }

  /// Throws what would stand against a change if it began now.
  package func check(_ intent: TreeIntent) throws(StoreError) {
    let lost = try lostApps(inTheWayOf: intent)
    try use { (database) throws(StoreError) in try Self.check(intent, in: database, besides: lost) }
  }

  /// Says that this process is at it no more, whether it is done or not.
  package func leave(_ noted: NotedIntent) {
    try? use { (database) throws(StoreError) in
      let key = Self.key(noted.number, database)
      Self.live.withLock { live in
        if live[key] == noted.intent { live[key] = nil }
      }
    }
  }

  /// Says that this process is about to end what was stopped; false if somebody has ended it, or is at it.
  ///
  /// As long as it is at it, nothing else is done at the intent's paths.
  package func claim(_ noted: NotedIntent) throws(StoreError) -> Bool {
    try use { (database) throws(StoreError) in
      guard try Self.isThere(noted, in: database) else { return false }
      let key = Self.key(noted.number, database)
      return Self.live.withLock { live in
        guard live[key] == nil else { return false }
        live[key] = noted.intent
        return true
      }
    }
  }

  /// Whether an intent is still noted, and not another one that has got its number.
  private static func isThere(
    _ noted: NotedIntent, in database: borrowing Database
  ) throws(StoreError) -> Bool {
    try intents(in: database).contains { $0.number == noted.number && $0.intent == noted.intent }
  }

  /// Whether the list of apps is as it was when the intent was made up.
  ///
  /// What is in a home that was ejected is installed again as if it was not.
  private static func check(
    _ intent: TreeIntent, in database: borrowing Database, besides lost: [InstalledApp]
  ) throws(StoreError) {
    let app = intent.app
    if intent.work != .uninstall {
      try checkRoot(of: app, in: database)
      try checkRoot(of: app, among: try intents(in: database).map(\.intent))
    }
    let known = try find(app.identifier, of: app.user, in: database)
    switch intent.work {
    case .install:
      if let known, !lost.contains(known) {
        throw .appExists(identifier: app.identifier.text, path: known.path)
      }
      try requireRoom(for: app, in: database)
      try requireRoomForBelongings(of: app, in: database)
    case .update:
      guard let known, known == intent.before else { throw .appBusy(identifier: app.identifier.text) }
      try requireRoomForBelongings(of: app, in: database)
      guard let waiting = intent.waiting else { break }
      // Another one may wait by now, or none.
      guard try waitingUpdate(of: app.identifier, for: app.user, in: database)?.name == waiting else {
        throw .appBusy(identifier: app.identifier.text)
      }
    case .uninstall:
      guard let known else { throw .noApp(identifier: app.identifier.text) }
      guard known == app else { throw .appBusy(identifier: app.identifier.text) }
    }
    guard intent.work != .uninstall, let other = try Self.app(at: app.path, in: database),
      other.identifier != app.identifier || other.user != app.user, !lost.contains(other)
    else { return }
    throw .appExists(identifier: other.identifier.text, path: other.path)
  }

  /// Notes that it is done: the list of apps is as the tree is now.
  package func finish(_ noted: NotedIntent) throws(StoreError) {
    try changeTypes(of: noted.intent.app.user) { (database) throws(StoreError) in
      let intent = noted.intent
      // Whoever comes late changes nothing that somebody else is at.
      guard try Self.isThere(noted, in: database) else {
        throw .appBusy(identifier: intent.app.identifier.text)
      }
      if intent.work != .uninstall { try Self.recordRoot(of: intent.app, in: database) }
      switch intent.work {
      case .install:
        try Self.forgetLost(besides: intent.app, in: database)
        try Self.add(intent.app, to: database)
      case .update: try Self.update(intent.app, in: database)
      case .uninstall:
        try Self.remove(
          intent.app.identifier, of: intent.app.user, keepingData: intent.keepsData, from: database)
      }
      try database.run("DELETE FROM intents WHERE id = ?", .integer(noted.number))
    }
  }

  private static func inTheWay(
    of app: InstalledApp, in database: borrowing Database
  ) throws(StoreError) -> [InstalledApp] {
    let known = [
      try find(app.identifier, of: app.user, in: database), try Self.app(at: app.path, in: database),
    ]
    return known.compactMap(\.self)
  }

  /// What stands against an installation in the list, and is in a home that was ejected.
  private func lostApps(inTheWayOf intent: TreeIntent) throws(StoreError) -> [InstalledApp] {
    guard intent.work == .install else { return [] }
    var lost: [InstalledApp] = []
    let known = try use { (database) throws(StoreError) in try Self.inTheWay(of: intent.app, in: database) }
    for other in known where try isLost(other) { lost.append(other) }
    return lost
  }

  /// Makes room for an app that is there: it was found out before that what stands against it in the list is
  /// in a home that was ejected.
  private static func forgetLost(
    besides app: InstalledApp, in database: borrowing Database
  ) throws(StoreError) {
    for other in try inTheWay(of: app, in: database) where try mayBeLost(other, in: database) {
      try database.run("DELETE FROM apps WHERE path = ?", .text(other.path))
    }
  }

  /// Takes an intent off of which nothing has been done.
  package func abandon(_ noted: NotedIntent) throws(StoreError) {
    try change { (database) throws(StoreError) in
      guard try Self.isThere(noted, in: database) else { return }
      try database.run("DELETE FROM intents WHERE id = ?", .integer(noted.number))
    }
  }

  /// What is being done, or was when a process was stopped; the oldest first.
  package func intents() throws(StoreError) -> [NotedIntent] {
    try use { (database) throws(StoreError) in try Self.intents(in: database) }
  }

  /// Where there are bundles of apps, with the seals that they may have: two where an update was interrupted.
  ///
  /// Also where one was about to be put: it may be there.
  package func bundles() throws(StoreError) -> [(path: String, seals: [[UInt8]])] {
    var seals: [ExactText: [[UInt8]]] = [:]
    for app in try apps() { seals[ExactText(app.path), default: []].append(app.seal) }
    for intent in try intents().map(\.intent) where intent.work != .uninstall {
      seals[ExactText(intent.app.path), default: []].append(intent.app.seal)
    }
    return seals.inOrder { $0.key < $1.key }.map { (path: $0.key.text, seals: $0.value) }
  }

  static func intents(in database: borrowing Database) throws(StoreError) -> [NotedIntent] {
    let path = database.path
    let live = live.withLock { $0 }
    let rows = try database.rows("SELECT id, intent FROM intents ORDER BY id") {
      (row) throws(StoreError) in
      let text = try row.text(1)
      guard let intent = try? JSONText.decode(TreeIntent.self, from: Array(text.utf8)) else {
        throw .registryDamaged(path: path, what: "an intent can't be read")
      }
      return (number: try row.integer(0), intent: intent)
    }
    return rows.map {
      NotedIntent(number: $0.number, intent: $0.intent, isLive: live[key($0.number, database)] != nil)
    }
  }
}

extension AppIdentifier {
  /// Whether both are one app: on a Mac, and in the registry, case makes no difference.
  package func isSame(as other: AppIdentifier) -> Bool { text.lowercased() == other.text.lowercased() }
}

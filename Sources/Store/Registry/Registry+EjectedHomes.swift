// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

// Homes elsewhere that are ejected may come back, with what lies beside them and what is noted of their apps
// and containers. Until then nothing of that is forgotten.

extension Registry {
  struct EjectedHome {
    let name: [UInt8]
    /// Where its volume was.
    let source: [UInt8]
    /// Nil if nobody knows.
    let owner: UInt32?
  }

  /// The homes that were ejected and have not come back.
  func ejectedHomes() throws(StoreError) -> [EjectedHome] {
    try use { (database) throws(StoreError) in
      let path = database.path
      return try database.rows("SELECT name, path, owner FROM ejected_homes") { (row) throws(StoreError) in
        EjectedHome(name: try row.bytes(0), source: try row.bytes(1), owner: try row.user(2, path))
      }
    }
  }

  /// Whether a path below the root of the tree leads into a home that was ejected and may come back.
  package func isInEjectedHome(_ path: String) throws(StoreError) -> Bool {
    guard let home = Homes.name(in: path) else { return false }
    return try ejectedHomes().contains { $0.name.elementsEqual(home.utf8) }
  }

  /// The homes that were ejected whose owner had a number that another account has now: what is noted there
  /// for the number is not that account's.
  ///
  /// A home in the store of that name says that the login is called otherwise.
  func homesOfFormerHolder(
    of user: UInt32, _ accounts: LocalAccounts = .users
  ) throws(StoreError) -> [String] {
    try ejectedHomes().filter { $0.owner == nil || $0.owner == user }
      .map { String(decoding: $0.name, as: UTF8.self) }
      .filter { accounts.id(of: $0) != user && ownerOfHome($0) != user && accounts.name(of: user) != nil }
  }

  /// Those of some things whose paths do not lead into such a home.
  func withoutFormerHolders<Thing>(
    _ things: [Thing], of user: UInt32?, _ path: (Thing) -> String
  ) throws(StoreError) -> [Thing] {
    guard let user, !things.isEmpty else { return things }
    let homes = try homesOfFormerHolder(of: user)
    if homes.isEmpty { return things }
    return things.filter { thing in
      let home = Homes.name(in: path(thing))
      return !homes.contains { home?.hasSameBytes(as: $0) == true }
    }
  }

  /// Whether an app is in a home that was ejected, and nothing is at its place, which may be another home's
  /// by now: then it stands in nobody's way.
  package func isLost(_ app: InstalledApp) throws(StoreError) -> Bool {
    guard app.user != nil else { return false }
    return try isInEjectedHome(app.path) && !isThere(app.path)
  }

  /// The app that a user has of an identifier, if it is lost.
  ///
  /// Nothing is looked at while others wait for the database: the disk may not answer.
  func lostApp(_ identifier: AppIdentifier, of user: UInt32?) throws(StoreError) -> InstalledApp? {
    guard let user else { return nil }
    let own = try use { (database) throws(StoreError) in
      try Self.find(identifier, of: user, in: database)
    }
    guard let own, try isLost(own) else { return nil }
    return own
  }

  /// Whether an app is in a home of a name of which one was ejected.
  static func mayBeLost(_ app: InstalledApp, in database: borrowing Database) throws(StoreError) -> Bool {
    guard app.user != nil, let home = Homes.name(in: app.path) else { return false }
    return try database.count(
      "SELECT count(*) FROM ejected_homes WHERE name = ?", .bytes(Array(home.utf8))) > 0
  }

  /// Whether another home of a name was ejected than the one at a place, and may come back.
  package func hasEjectedHome(_ name: [UInt8], besides source: [UInt8]) throws(StoreError) -> Bool {
    try use { (database) throws(StoreError) in
      try database.count(
        "SELECT count(*) FROM ejected_homes WHERE name = ? AND path <> ?", .bytes(name), .bytes(source)) > 0
    }
  }

  /// What is noted of a home's containers is another one's of its name that was ejected: which directories
  /// those are is noted anew when it comes back.
  static func forgetObjects(
    inHome name: String, of user: UInt32?, in database: borrowing Database
  ) throws(StoreError) {
    try database.run(
      """
      UPDATE containers SET inode = NULL
      WHERE (?1 IS NULL OR user = ?1) AND substr(path, 1, length(?2)) = ?2
      """, .optional(user), .text("Users/\(name)/"))
  }

  /// Forgets the volume of a home that is ejected.
  ///
  /// The home may come back, with all that is noted of it; until then, what others have granted there counts
  /// for nothing. Where somebody may still use it, nothing of it stays granted.
  package func ejectHome(_ volume: VolumeRecord, droppingGrants: Bool = false) throws(StoreError) {
    try change { (database) throws(StoreError) in
      try database.run(
        """
        INSERT OR REPLACE INTO ejected_homes (name, path, owner)
        SELECT name, path, (SELECT owner FROM home_owners WHERE volume = ?1)
        FROM volumes WHERE id = ?1 AND place = 'Users'
        """, .integer(volume.id))
      if !droppingGrants { try Self.setAsideGrants(inHome: volume, in: database) }
      try Self.removeVolume(volume.id, in: database)
      if droppingGrants { try Self.dropGrants(of: volume, in: database) }
    }
  }

  /// Notes that the volume of a home is lost, which may come back as if it was ejected.
  func noteLostHome(_ name: String, at source: String) throws(StoreError) {
    try change { (database) throws(StoreError) in
      try database.run(
        "INSERT OR IGNORE INTO ejected_homes (name, path) VALUES (?, ?)", .bytes(Array(name.utf8)),
        .bytes(Array(source.utf8)))
    }
  }
}

// MARK: For good

extension Store {
  /// Forgets a home that was ejected, for good: what is noted of its apps and containers, and what was
  /// removed from it.
  ///
  /// What is there is another home's of its name, and stays: that one must be there, if it lies elsewhere.
  /// What its owner has decided stays, too. Of several of that name `source` says which one is meant; what
  /// may be another one's is forgotten with the last of them.
  package func forgetEjectedHome(
    _ name: String, from source: String? = nil, in registry: Registry
  ) throws(StoreError) {
    try Homes.checkName(name)
    let homes = try registry.ejectedHomes().filter { $0.name.elementsEqual(name.utf8) }
    if homes.isEmpty { throw .noEjectedHome(name: name) }
    let sources = homes.map { String(decoding: $0.source, as: UTF8.self) }
    let meant = homes.filter { home in source.map { home.source.elementsEqual($0.utf8) } ?? true }
    guard let home = meant.first, meant.count == 1 else {
      throw .severalEjectedHomes(name: name, sources: sources.inOrder(by: <))
    }
    let others = homes.filter { $0.source != home.source }
    /// Whether what is noted for a user can only be of that home.
    func isMeant(_ user: UInt32?) -> Bool {
      others.isEmpty
        || home.owner != nil && home.owner == user
          && others.allSatisfy { $0.owner != nil && $0.owner != user }
    }
    // What is noted of the home that has the name now can't be told from that while nobody can look into it.
    if let home = homeElsewhere(of: "Users/\(name)"), home.target == nil {
      throw .homeIsAway(path: "\(path)/tree/Users/\(name)")
    }
    let prefix = "Users/\(name)/"
    var lost = LostContents()
    lost.isAll = others.isEmpty && !registry.isThere("Users/\(name)")
    for app in try registry.apps() where app.path.utf8.starts(with: prefix.utf8) && isMeant(app.user) {
      if !registry.isThere(app.path) { lost.apps.append(app) }
    }
    for container in try registry.containers()
    where container.path.utf8.starts(with: prefix.utf8) && isMeant(container.user) {
      if !registry.isThere(container.path) { lost.containers.append(container) }
    }
    for removed in try registry.removedContainers()
    where removed.container.path.utf8.starts(with: prefix.utf8) && isMeant(removed.container.user)
      && openDirectory(of: removed) == nil
    {
      lost.removed.append(removed.number)
    }
    try registry.forgetEjectedHome(name, home.source, lost)
  }
}

/// What is noted of a home that was ejected, and is not there.
private struct LostContents: Sendable {
  var isAll = false
  var apps: [InstalledApp] = []
  var containers: [ContainerRecord] = []
  var removed: [Int64] = []
}

extension Registry {
  fileprivate func forgetEjectedHome(
    _ name: String, _ source: [UInt8], _ lost: LostContents
  ) throws(StoreError) {
    try changeTypes(of: nil) { (database) throws(StoreError) in
      for noted in try Self.intents(in: database)
      where !noted.isLive && lost.apps.contains(where: { noted.intent.isAbout($0) }) {
        try database.run("DELETE FROM intents WHERE id = ?", .integer(noted.number))
      }
      for app in lost.apps where try Self.find(app.identifier, of: app.user, in: database) == app {
        _ = try Self.remove(app.identifier, of: app.user, keepingData: true, from: database)
      }
      for container in lost.containers {
        try database.run("DELETE FROM containers WHERE uuid = ?", .text(container.uuid))
        try Self.dropGrants(into: container.path, in: database)
      }
      if lost.isAll { try Self.dropGrants(below: "Users/\(name)/", in: database) }
      try database.run(
        """
        DELETE FROM grants WHERE ejected = ?2
          AND substr(CAST(path || '/' AS BLOB), 1, length(?1)) = ?1
        """, .bytes(Array("Users/\(name)/".utf8)), .bytes(source))
      for number in lost.removed {
        try database.run("DELETE FROM removed WHERE id = ?", .integer(number))
      }
      try database.run(
        "DELETE FROM ejected_homes WHERE name = ? AND path = ?", .bytes(Array(name.utf8)), .bytes(source))
    }
  }
}

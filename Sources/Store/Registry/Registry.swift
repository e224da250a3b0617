// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO
internal import Policy
internal import Synchronization

/// What a store knows of its apps and their containers: the database `state/insula.db`.
///
/// Several processes may use it at once. A daemon of an earlier version may be one of them, so only a process
/// that has the store alone brings the registry to this version; others look at a copy in memory.
package final class Registry: Sendable {
  static let fileName = "insula.db"

  /// A change takes less than a millisecond of the processor, and the disk's time to keep it; nothing else
  /// waits for this lock.
  private let database: Mutex<Database>
  /// Whether this is a copy of a registry of an earlier version, made to look at.
  private let isCopy: Bool
  /// Whether something is at a path below the root of the store's tree.
  private let isThere = Mutex<@Sendable (_ path: String) -> Bool>({ _ in true })
  /// Whose the home of a name is; nothing in it is looked at.
  private let homeOwner = Mutex<@Sendable (_ name: String) -> UInt32?>({ _ in nil })

  /// Opens the registry of a store; a store of an earlier version gets one.
  ///
  /// The caller has the store alone: the registry of an earlier version becomes one of this version. `state`
  /// is the store's directory `state`, which lies at `path`.
  package init(state: FD, path: String, patience: Int32 = 10_000) throws(StoreError) {
    let file = "\(path)/\(Self.fileName)"
    try Self.makeFile(in: state, file)
    let database = try Database.open(Self.fileName, in: state, path: file, patience: patience)
    try Self.migrate(database)
    self.database = Mutex(database)
    isCopy = false
  }

  /// Another number whenever apps of the machine or of a user, or their declarations, have changed through
  /// this object: for those who keep what they have read.
  ///
  /// What other users have for themselves counts for nothing.
  package func typesVersion(for user: UInt32?) -> Int {
    typesChanges.withLock { changes in
      Set([nil, user]).reduce(0) { $0 &+ (changes[$1] ?? 0) }
    }
  }
  /// By the user whose apps have changed; nil stands for the machine's.
  private let typesChanges = Mutex<[UInt32?: Int]>([:])

  private init(_ database: consuming sending Database, isCopy: Bool) {
    self.database = Mutex(database)
    self.isCopy = isCopy
  }

  /// The registry if the store has one already; looking makes none, and changes none.
  ///
  /// With `migrates` the caller has the store alone.
  package static func existing(
    state: FD, path: String, patience: Int32 = 10_000, migrates: Bool = false
  ) throws(StoreError) -> Registry? {
    let file = "\(path)/\(fileName)"
    do throws(Errno) {
      guard try state.status(of: fileName).st_size > 0 else {
        // One whose making was stopped.
        return nil
      }
    } catch {
      guard error == .ENOENT else { throw StoreError(error, doing: "examine", path: file) }
      return nil
    }
    let database = try Database.open(fileName, in: state, path: file, patience: patience)
    // The first step may have been stopped after the file got its size: the journal beside it takes that
    // back.
    let found = try version(of: database)
    if found == 0 { return nil }
    guard found < RegistrySchema.version, !migrates else {
      try migrate(database)
      return Registry(database, isCopy: false)
    }
    let copy = try Database.copy(fileName, in: state, path: file, patience: patience)
    try migrate(copy)
    return Registry(copy, isCopy: true)
  }

  /// The registry of a store, which gets one if it has none.
  ///
  /// One of an earlier version is for those alone who have the store for themselves.
  package convenience init(of store: Store) throws(StoreError) {
    if !store.isOursAlone, let known = try Self.existing(of: store), known.isCopy {
      throw .registryOlder(path: "\(store.path)/state/\(Self.fileName)")
    }
    try self.init(state: store.state, path: store.path + "/state")
    look(in: store)
    try requireSound(for: store)
  }

  /// The registry of a store that has one already; who does not have the store alone gets one to look at.
  package static func existing(of store: Store) throws(StoreError) -> Registry? {
    let known = try existing(
      state: store.state, path: store.path + "/state", migrates: store.isOursAlone)
    known?.look(in: store)
    try known?.requireSound(for: store)
    return known
  }

  /// From now on it knows which bundles are there.
  private func look(in store: Store) {
    // Whoever keeps a registry keeps no store open.
    isThere.withLock {
      $0 = { [weak store] path in
        guard let store else { return true }
        // Nobody knows what is in a home that is away, or on a disk that gives errors.
        if let home = store.homeElsewhere(of: path), home.target == nil { return true }
        do throws(Errno) {
          _ = try store.tree.status(at: path)
          return true
        } catch {
          return error != .ENOENT && error != .ENOTDIR
        }
      }
    }
    homeOwner.withLock {
      $0 = { [weak store] name in
        guard let store, let users = try? store.tree.openDirectory("Users"),
          let status = try? users.fd.status(of: name),
          status.isDirectory
        else { return nil }
        return status.st_uid
      }
    }
  }

  /// Whose the home of a name is, if it lies in the store.
  func ownerOfHome(_ name: String) -> UInt32? { homeOwner.withLock { $0 }(name) }

  /// Whether something is at a path below the root of the tree; also if that can't be told.
  func isThere(_ path: String) -> Bool { isThere.withLock { $0 }(path) }

  /// Throws unless what is in the database fits together, when a store is begun to be used.
  ///
  /// Somebody else may have made the file: an index that lacks a row hides a refusal from whoever asks by it.
  /// Of 20,000 apps, with containers, decisions and grants, it takes a seventh of a second; of a hundred, a
  /// millisecond.
  private func requireSound(for store: Store) throws(StoreError) {
    guard store.isOursAlone, !store.hasSoundRegistry.load(ordering: .acquiring) else { return }
    try use { (database) throws(StoreError) in
      let found = try database.rows("PRAGMA integrity_check(1)") { (row) throws(StoreError) in
        try row.text(0)
      }
      guard found == ["ok"] else {
        throw .registryDamaged(
          path: database.path,
          what: "what is in it does not fit together (\(found.first?.beginning(200).sanitized ?? "unknown"))")
      }
    }
    store.hasSoundRegistry.store(true, ordering: .releasing)
  }

  /// Lends the database.
  func use<Result: Sendable>(
    _ body: @Sendable (borrowing Database) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    try database.withLock { (database) throws(StoreError) in try body(database) }
  }

  /// Like ``use(_:)``; all that `body` changes is changed, or nothing.
  func change<Result: Sendable>(
    _ body: @Sendable (borrowing Database) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    try database.withLock { (database) throws(StoreError) in
      if isCopy { throw .registryOlder(path: database.path) }
      return try database.transaction { () throws(StoreError) in try body(database) }
    }
  }

  /// Like ``change(_:)``, of what the types of a user's files depend on; with no user, of everybody's.
  func changeTypes<Result: Sendable>(
    of user: UInt32?, _ body: @Sendable (borrowing Database) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    defer { typesChanges.withLock { $0[user, default: 0] &+= 1 } }
    return try change(body)
  }

  // MARK: Making it what it should be

  /// SQLite would make the file for everyone to read.
  private static func makeFile(in state: FD, _ path: String) throws(StoreError) {
    do throws(Errno) {
      _ = try state.open(fileName, O_RDWR | O_CREAT | O_EXCL, mode: 0o600)
      try state.synchronize(dataOnly: false)
    } catch {
      guard error != .EEXIST else { return }
      throw StoreError(error, doing: "create", path: path)
    }
  }

  private static func version(of database: borrowing Database) throws(StoreError) -> Int {
    let version = try number(
      database.rows("PRAGMA user_version") { (row) throws(StoreError) in try row.integer(0) })
    let application = try number(
      database.rows("PRAGMA application_id") { (row) throws(StoreError) in try row.integer(0) })
    // A database that nothing was ever put into has neither.
    guard version != 0 || application != 0 else { return 0 }
    guard application == RegistrySchema.application, version > 0 else {
      throw .registryDamaged(path: database.path, what: "it is a database of another program")
    }
    return Int(version)
  }

  private static func number(_ rows: [Int64]) -> Int64 { rows.first ?? 0 }

  private static func migrate(_ database: borrowing Database) throws(StoreError) {
    let known = RegistrySchema.version
    if try version(of: database) == known { return try requireOwnParts(database) }
    let path = database.path
    try database.transaction { () throws(StoreError) in
      // Another process may have been faster.
      let found = try version(of: database)
      guard found <= known else { throw .registryNewer(path: path, found: found, known: known) }
      for (step, number) in zip(RegistrySchema.steps, 1...).dropFirst(found) {
        for statement in step.statements { try database.run(statement) }
        try database.run(
          "INSERT INTO migrations (version, name) VALUES (?, ?)", .integer(Int64(number)), .text(step.name))
      }
      try requireOwnParts(database)
    }
  }

  // MARK: Checking it

  /// What is wrong with the database itself; empty if nothing is.
  package func problems() throws(StoreError) -> [String] {
    do throws(StoreError) {
      return try use { (database) throws(StoreError) in
        let integrity = try database.rows("PRAGMA integrity_check(20)") { (row) throws(StoreError) in
          try row.text(0)
        }
        let strays = try database.rows("PRAGMA foreign_key_check") { (row) throws(StoreError) in
          "a row of \(try row.text(0)) has no app"
        }
        return integrity.filter { $0 != "ok" } + strays.prefix(20)
      }
    } catch {
      guard case .registryDamaged(_, let what) = error else { throw error }
      return [what]
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO

/// Why a backup in iTunes' form can't be read; the reason fits into a sentence.
package struct BackupFlaw: Error, Equatable, Sendable {
  package let reason: String

  package init(_ reason: String) { self.reason = reason }

  init(_ error: StoreError) {
    reason =
      switch error {
      case .registryDamaged(_, let what): "\(ManifestDatabase.name): \(what)"
      case .registryFailed(_, _, let message): "\(ManifestDatabase.name): \(message)"
      case .failed(_, _, let errno): "\(ManifestDatabase.name): \(errno.message)"
      default: "\(error)"
      }
  }
}

/// The list of the files in a backup in iTunes' form, `Manifest.db`.
///
/// One that is read comes from anywhere. SQLite opens it as it lies there, writes nothing, and works through
/// no view, trigger or virtual table; every query has an end, whatever the tree of pages looks like. What the
/// rows say is for the caller to judge.
package struct ManifestDatabase: ~Copyable {
  package static let name = "Manifest.db"

  private let database: Database

  /// A row, as it is there.
  package struct Row {
    package let id: String
    package let path: [UInt8]
    package let flags: Int64
    package let file: [UInt8]
  }

  /// What rows may come to, altogether and of one domain.
  private static let mostRows = 2_000_000
  private static let mostBytes = 512 << 20

  // MARK: Making one

  package init(creatingIn directory: FD, path: String) throws(StoreError) {
    try explaining("create", path) { () throws(Errno) in
      _ = try directory.open(Self.name, O_RDWR | O_CREAT | O_EXCL, mode: 0o600)
    }
    let database = try Database.open(Self.name, in: directory, path: path, patience: 0, as: .new)
    try database.run("BEGIN")
    try database.run(
      """
      CREATE TABLE Files (fileID TEXT PRIMARY KEY, domain TEXT, relativePath TEXT, flags INTEGER, file BLOB)
      """)
    try database.run("CREATE TABLE Properties (key TEXT PRIMARY KEY, value BLOB)")
    self.database = database
  }

  package func add(
    _ id: String, domain: String, path: String, flags: Int64, file: [UInt8]
  ) throws(StoreError) {
    try database.run(
      "INSERT INTO Files VALUES (?, ?, ?, ?, ?)", .text(id), .text(domain), .text(path), .integer(flags),
      .bytes(file))
  }

  package func finish() throws(StoreError) {
    try database.run("CREATE INDEX FilesDomainIdx ON Files(domain)")
    try database.run("CREATE INDEX FilesRelativePathIdx ON Files(relativePath)")
    try database.run("CREATE INDEX FilesFlagsIdx ON Files(flags)")
    try database.run("COMMIT")
  }

  // MARK: Reading one

  package init(reading directory: FD, path: String) throws(BackupFlaw) {
    try Self.requireFile(directory)
    do throws(StoreError) {
      let database = try Database.open(Self.name, in: directory, path: path, patience: 0, as: .strange)
      try Self.requireTable(database)
      self.database = database
    } catch {
      throw BackupFlaw(error)
    }
  }

  private static func requireFile(_ directory: FD) throws(BackupFlaw) {
    do throws(Errno) {
      guard try directory.status(of: name).isRegular else { throw .EINVAL }
    } catch .ENOENT {
      throw BackupFlaw("it has no \(name)")
    } catch .EINVAL {
      throw BackupFlaw("its \(name) is not a file")
    } catch {
      throw BackupFlaw("\(name): \(error.message)")
    }
    // What another program has not put into the file yet would be missing.
    for suffix in ["-wal", "-journal"] {
      guard let beside = try? directory.status(of: name + suffix), beside.st_size > 0 else { continue }
      throw BackupFlaw(
        "its \(name) was left in the middle of a change (\(name)\(suffix)); open it once with 'sqlite3'")
    }
  }

  /// An ordinary table with ordinary columns: no view, no virtual table, nothing that is computed.
  private static func requireTable(_ database: borrowing Database) throws(StoreError) {
    var kinds: [String] = []
    try database.each("PRAGMA main.table_list('Files')") { (row) throws(StoreError) in
      kinds.append(try row.text(2))
    }
    guard kinds == ["table"] else { throw flaw(database, "it has no table Files") }
    var computed: Int64 = 0
    try database.each("PRAGMA main.table_xinfo('Files')") { (row) throws(StoreError) in
      computed |= try row.integer(6)
    }
    guard computed == 0 else { throw flaw(database, "its table Files has columns that are computed") }
  }

  private static func flaw(_ database: borrowing Database, _ what: String) -> StoreError {
    .registryDamaged(path: database.path, what: what)
  }

  /// Looks at the domain of each file.
  ///
  /// All of them, so that a table without an end is found before anything else is done with it.
  package func eachDomain(_ look: (String) -> Void) throws(BackupFlaw) {
    try bounded("SELECT domain FROM Files NOT INDEXED") { (row) throws(StoreError) in
      let domain = try row.textBytes(0)
      if let domain = String(validating: domain, as: UTF8.self) { look(domain) }
      return domain.count
    }
  }

  /// Looks at the files of a domain, in any order; of ``BackupFlaw``s, the first one ends it.
  package func each(of domain: String, _ look: (Row) throws(BackupFlaw) -> Void) throws(BackupFlaw) {
    var flaw: BackupFlaw?
    do throws(BackupFlaw) {
      // Not by an index, which may be of anything.
      try bounded(
        """
        SELECT fileID, domain, relativePath, flags, file FROM Files NOT INDEXED WHERE domain = ?
        """, .text(domain)
      ) { (columns) throws(StoreError) in
        // The column may say that other texts are equal too.
        guard try columns.textBytes(1).elementsEqual(domain.utf8) else { return 0 }
        let row = Row(
          id: try columns.text(0), path: try columns.textBytes(2), flags: try columns.integer(3),
          file: try columns.bytes(4))
        do throws(BackupFlaw) {
          try look(row)
        } catch {
          flaw = error
          throw Self.flaw(database, "")
        }
        return row.path.count + row.file.count
      }
    } catch {
      throw flaw ?? error
    }
  }

  /// Looks at the rows of a query, and stops where they come to more than a backup can have; `look` gives how
  /// long a row is.
  private func bounded(
    _ query: StaticString, _ values: Database.Value..., look: (Columns) throws(StoreError) -> Int
  ) throws(BackupFlaw) {
    var (rows, bytes) = (0, 0)
    do throws(StoreError) {
      try database.each(query, values) { (row) throws(StoreError) in
        rows += 1
        // No value is longer than a mebibyte.
        bytes += try look(row)
        guard rows <= Self.mostRows, bytes <= Self.mostBytes else {
          throw Self.flaw(database, "it lists more files than can be read")
        }
      }
    } catch {
      throw BackupFlaw(error)
    }
  }
}

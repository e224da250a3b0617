// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Apps
internal import Glibc
internal import LinuxIO
internal import Policy
internal import PropertyLists
@testable internal import Store
internal import TestSupport
internal import Testing

/// Databases and archives that are made to hurt whoever reads them.
struct ITunesDatabaseTests {
  private static let columns = "(fileID TEXT, domain TEXT, relativePath TEXT, flags, file)"

  private static let schemas: [(schema: [StaticString], words: String)] = [
    (["CREATE TABLE Other (x)"], "it has no table Files"),
    (
      [
        """
        CREATE VIEW Files AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
        SELECT i AS fileID, 'AppDomain-org.example.editor' AS domain, 'a' AS relativePath, 1 AS flags,
        x'00' AS file FROM n
        """
      ], "it has no table Files"
    ),
    (["CREATE VIRTUAL TABLE Files USING fts5(fileID, domain, relativePath, flags, file)"], "no table Files"),
    (
      [
        """
        CREATE TABLE Files (fileID TEXT, domain TEXT, relativePath TEXT, flags,
        file AS (zeroblob(1000000)))
        """
      ], "columns that are computed"
    ),
    (["CREATE TABLE Files (fileID TEXT, domain TEXT)"], "no such column"),
    (
      [
        "CREATE TABLE Files (fileID TEXT, domain, relativePath TEXT, flags, file)",
        "INSERT INTO Files VALUES ('a', x'00', 'b', 1, x'00')",
      ], "wrong type"
    ),
    (
      [
        "CREATE TABLE Files (fileID TEXT, domain TEXT, relativePath, flags, file)",
        "INSERT INTO Files VALUES ('a', 'AppDomain-org.example.editor', NULL, 1, x'00')",
      ], "wrong type"
    ),
    (
      [
        "CREATE TABLE Files (fileID TEXT, domain TEXT, relativePath, flags, file)",
        "INSERT INTO Files VALUES ('a', 'AppDomain-org.example.editor', 'Documents/x', 1, 'text')",
      ], "wrong type"
    ),
    // Equal for SQLite, and not for us: there is nothing to import, and nothing to refuse.
    (
      [
        "CREATE TABLE Files (fileID TEXT, domain TEXT COLLATE NOCASE, relativePath TEXT, flags, file)",
        "INSERT INTO Files VALUES ('a', 'AppDomain-org.example.EDITOR', '../x', 1, x'00')",
      ], ""
    ),
  ]

  @Test(arguments: schemas.indices) func databasesAreRefused(index: Int) throws {
    let (schema, words) = Self.schemas[index]
    let backup = try HandMadeBackup()
    try backup.makeDatabase { database in for statement in schema { try database.run(statement) } }
    let refusal = try backup.refusal()
    #expect(words.isEmpty ? refusal == nil : refusal?.contains(words) == true, "\(refusal ?? "accepted")")
  }

  /// A value that is longer than any of ours is not read.
  @Test func longValuesAreRefused() throws {
    let backup = try HandMadeBackup()
    try backup.shell(
      """
      python3 -c 'import sqlite3
      db = sqlite3.connect("Manifest.db")
      db.execute("UPDATE Files SET file = zeroblob(2000000)"); db.commit()'
      """)
    #expect(try backup.refusal()?.contains("too big") == true)
  }

  /// Pages that are in each other many times over: twenty kilobytes are a table of 50^10 rows.
  @Test(arguments: [("Files", "lists more files than can be read"), ("schema", "interrupted")])
  func noTreeOfPagesIsEndless(what: String, words: String) throws {
    let backup = try HandMadeBackup()
    try backup.makeDatabase { database in
      try database.run("PRAGMA page_size = 1024")
      try database.run("CREATE TABLE Files (fileID TEXT, domain TEXT, relativePath TEXT, flags, file)")
      try database.run("CREATE TABLE Filler (x)")
      try database.run("INSERT INTO Files VALUES ('a', 'HomeDomain', 'b', 1, x'00')")
      try database.run("INSERT INTO Filler VALUES (zeroblob(60000))")
    }
    var bytes = try backup.databaseBytes()
    let leaf = what == "Files" ? Array(bytes[1024..<2048]) : Array(bytes[0..<1024])
    // Page 1 is the schema, page 2 the table, and from page 10 on there is only what fills it.
    let pages = [what == "Files" ? 2 : 1] + Array(10..<20)
    for (page, below) in zip(pages, pages.dropFirst() + [30]) {
      let start = page == 1 ? 100 : 0
      let made = Self.interior(to: UInt8(below), cells: 50, startingAt: start)
      bytes.replaceSubrange((page - 1) * 1024 + start..<page * 1024, with: made[start...])
    }
    // The schema's own page begins with the header of the file, which another page has not.
    let last = what == "Files" ? leaf : Self.leafOfSchema()
    bytes.replaceSubrange(29 * 1024..<30 * 1024, with: last)
    try backup.replaceDatabase(bytes)
    let start = monotonicNanoseconds()
    let refusal = try backup.refusal()
    #expect(refusal?.contains(words) == true, "\(refusal ?? "accepted")")
    #expect(monotonicNanoseconds() - start < 120_000_000_000)
  }

  /// A page of a table that has only further pages.
  private static func interior(to page: UInt8, cells: Int, startingAt start: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: 1024)
    let content = 1024 - 5 * cells
    bytes[start] = 5
    (bytes[start + 3], bytes[start + 4]) = (UInt8(cells >> 8), UInt8(cells & 0xff))
    (bytes[start + 5], bytes[start + 6]) = (UInt8(content >> 8), UInt8(content & 0xff))
    bytes[start + 11] = page
    for cell in 0..<cells {
      let offset = content + 5 * cell
      (bytes[start + 12 + 2 * cell], bytes[start + 13 + 2 * cell]) = (
        UInt8(offset >> 8), UInt8(offset & 0xff)
      )
      (bytes[offset + 3], bytes[offset + 4]) = (page, UInt8(cell + 1))
    }
    return bytes
  }

  /// A page with one row: a table that may be there already.
  private static func leafOfSchema() -> [UInt8] {
    let sql = Array("CREATE TABLE IF NOT EXISTS Files(x)".utf8)
    let name = Array("Files".utf8)
    let kind = Array("table".utf8)
    let header: [UInt8] =
      [6, UInt8(13 + 2 * kind.count), UInt8(13 + 2 * name.count)]
      + [UInt8(13 + 2 * name.count), 1, UInt8(13 + 2 * sql.count)]
    let payload = header + kind + name + name + [2] + sql
    let cell = [UInt8(payload.count), 1] + payload
    var bytes = [UInt8](repeating: 0, count: 1024)
    let offset = 1024 - cell.count
    (bytes[0], bytes[4]) = (13, 1)
    (bytes[5], bytes[6], bytes[8], bytes[9]) = (
      UInt8(offset >> 8), UInt8(offset & 0xff), UInt8(offset >> 8), UInt8(offset & 0xff)
    )
    bytes.replaceSubrange(offset..., with: cell)
    return bytes
  }

  @Test func noDamageStopsTheReader() throws {
    let backup = try HandMadeBackup(
      (0..<60).map { HandMadeBackup.Row.file("Documents/\($0 / 10)/\($0)") } + [.directory("Documents")])
    let whole = try backup.databaseBytes()
    var random = SeededRandom(seed: 1)
    var accepted = 0
    let count = fuzzInputs(usually: 1500) / 5
    for _ in 0..<count {
      var bytes = whole
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        // Where the structure is, more often than elsewhere.
        let page = Int.random(in: 0..<(bytes.count / 4096), using: &random) * 4096
        let place = page + Int.random(in: 0..<(Bool.random(using: &random) ? 120 : 4096), using: &random)
        bytes[place] = UInt8.random(in: 0 ... .max, using: &random)
      }
      try backup.replaceDatabase(bytes)
      try backup.shell("rm -rf ../made; mkdir ../made")
      if try backup.refusal() == nil { accepted += 1 }
      #expect(try backup.temporary.names() == ["backup", "made"])
    }
    #expect(accepted > count / 50 && accepted < count)
  }
}

extension HandMadeBackup {
  func databaseBytes() throws -> [UInt8] {
    let directory = try TemporaryDirectory.open(path)
    return try directory.fd.contents(of: "Manifest.db", limit: 1 << 24)
  }

  func replaceDatabase(_ bytes: [UInt8]) throws {
    let directory = try TemporaryDirectory.open(path)
    let file = try directory.fd.open("Manifest.db", O_WRONLY | O_TRUNC)
    try file.fd.writeAll(bytes)
  }
}

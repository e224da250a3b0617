// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Synchronization

// A store may come from somebody else, and its database with it. Triggers, other rules for columns, and
// tables of the same name would change what our statements do: a refusal would become a permission. So a
// database that is not made as ours are is not used.

extension Registry {
  /// A table, an index, or something else that a database consists of.
  private struct Part: Hashable, Sendable {
    let kind: String
    let name: String
    let table: String
    /// By what it was made, with one blank wherever there are blanks.
    let statement: ExactText

    var words: String { "\(kind.short) \(name.short)" }
  }

  /// The parts that all steps make.
  private static let ownParts = Mutex<Set<Part>?>(nil)

  /// Throws unless the database consists of what our steps make, and of nothing else.
  static func requireOwnParts(_ database: borrowing Database) throws(StoreError) {
    var missing = try ownParts(like: database)
    let path = database.path
    try eachPart(of: database) { (part) throws(StoreError) in
      guard missing.remove(part) != nil else {
        throw .registryDamaged(path: path, what: "insula has not made its \(part.words)")
      }
    }
    if let part = missing.min(by: { ExactText($0.name) < ExactText($1.name) }) {
      throw .registryDamaged(path: path, what: "its \(part.words) is missing")
    }
  }

  private static func ownParts(like database: borrowing Database) throws(StoreError) -> Set<Part> {
    if let known = ownParts.withLock({ $0 }) { return known }
    // As this machine's SQLite notes them.
    let made = try database.emptyInMemory()
    for step in RegistrySchema.steps {
      for statement in step.statements { try made.run(statement) }
    }
    var parts: Set<Part> = []
    try eachPart(of: made) { (part) throws(StoreError) in parts.insert(part) }
    let found = parts
    ownParts.withLock { $0 = found }
    return parts
  }

  private static func eachPart(
    of database: borrowing Database, _ body: (Part) throws(StoreError) -> Void
  ) throws(StoreError) {
    try database.each("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master") {
      (row) throws(StoreError) in
      let name = try row.text(1)
      // What SQLite counts by itself when it is asked to (ANALYZE) says nothing that we would obey.
      let kind = try row.text(0)
      if kind == "table", name == "sqlite_stat1" || name == "sqlite_stat4" { return }
      let statement = withSingleBlanks(try row.text(3))
      try body(
        Part(kind: kind, name: name, table: try row.text(2), statement: ExactText(statement)))
    }
  }

  /// By bytes: each opening of a registry looks at some kilobytes of it.
  private static func withSingleBlanks(_ text: String) -> String {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.utf8.count)
    var isAfterBlank = true
    for byte in text.utf8 {
      let isBlank = byte == UInt8(ascii: " ") || (0x09...0x0d).contains(byte)
      if isBlank, !isAfterBlank { bytes.append(UInt8(ascii: " ")) }
      if !isBlank { bytes.append(byte) }
      isAfterBlank = isBlank
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

extension String {
  /// For people; a stranger may have chosen it.
  fileprivate var short: String { String(prefix(60)).sanitized }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CSQLite

/// The columns of the row that a query has come to.
struct Columns {
  private let statement: OpaquePointer
  private let path: String

  init(_ statement: OpaquePointer, _ path: String) {
    self.statement = statement
    self.path = path
  }

  func integer(_ index: Int32) throws(StoreError) -> Int64 {
    try require(SQLITE_INTEGER, index)
    return sqlite3_column_int64(statement, index)
  }

  func text(_ index: Int32) throws(StoreError) -> String {
    try require(SQLITE_TEXT, index)
    return String(decoding: bytes(at: sqlite3_column_text(statement, index), index), as: UTF8.self)
  }

  /// A text as it is there, which may not be UTF-8.
  func textBytes(_ index: Int32) throws(StoreError) -> [UInt8] {
    try require(SQLITE_TEXT, index)
    return Array(bytes(at: sqlite3_column_text(statement, index), index))
  }

  func bytes(_ index: Int32) throws(StoreError) -> [UInt8] {
    try require(SQLITE_BLOB, index)
    return Array(bytes(at: sqlite3_column_blob(statement, index), index))
  }

  func isNull(_ index: Int32) -> Bool { sqlite3_column_type(statement, index) == SQLITE_NULL }

  private func bytes(at start: UnsafeRawPointer?, _ index: Int32) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(
      start: start, count: start == nil ? 0 : Int(sqlite3_column_bytes(statement, index)))
  }

  private func require(_ type: Int32, _ index: Int32) throws(StoreError) {
    guard sqlite3_column_type(statement, index) == type else {
      throw .registryDamaged(
        path: path, what: "column \(index) of a row has the wrong type")
    }
  }
}

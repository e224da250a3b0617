// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import CSQLite
internal import Glibc
internal import LinuxIO

/// A connection to an SQLite database in a directory of ours.
///
/// Statements are constants of the program, values are bound to them, and columns have types. Changes are
/// kept by a rollback journal and not by a log beside (WAL): so a plain copy of the file is a backup whenever
/// nobody is writing, and a store on a network filesystem works. Whenever the process or the machine stops,
/// what was committed is there and what was not is gone.
///
/// A change that is under way must be able to end on a disk that has filled up meanwhile: the journal keeps
/// its file and its blocks from one change to the next, and the database has blocks for what the next one
/// adds.
struct Database: ~Copyable {
  private let handle: OpaquePointer
  /// Where the database is, for messages.
  let path: String
  /// The connection uses its files by this, through the descriptor of the directory: both go after it.
  private let files: AnchoredFiles
  private let directory: OwnedFD
  private let journal: String
  /// How much longer a statement may go on; nil where it may for ever.
  private let steps: UnsafeMutablePointer<Int32>?
  /// Whether no change reaches a file.
  private let isInMemory: Bool

  /// What a database is to us.
  enum Use {
    /// It outlasts all that can happen.
    case kept
    /// It is being made, and thrown away if that does not end well.
    case new
    /// Somebody else has made it, with what intent we don't know; it is only read.
    case strange
    /// It is in memory, and goes with the connection.
    case copied
  }

  /// What a change may need: the pages that it touches in the journal, those that it adds in the database.
  private static let reserve: Int64 = 128 << 10

  /// The most that one value may be long, in bytes.
  static let longestValue: Int32 = 1 << 20
  /// Of a stranger's database no query gives more rows.
  ///
  /// Ours has as many as there are: how many there can be is limited for each user, where rows are added, so
  /// that nobody makes it unreadable for the others.
  static let strangeRowLimit = 100_000

  /// Opens the database called `name`, which must be there.
  ///
  /// `patience` is how many milliseconds are waited for another process that writes. On a filesystem that is
  /// read-only it can be read.
  static func open(
    _ name: String, in directory: FD, path: String, patience: Int32, as use: Use = .kept
  ) throws(StoreError) -> Database {
    let directory = try explaining("open", path) { () throws(Errno) in try directory.duplicated() }
    if case .kept = use { try requireOurs(name, in: directory.fd, path: path) }
    let file = "/proc/self/fd/\(directory.fd.raw)/\(name)"
    guard let files = AnchoredFiles(to: file) else {
      throw .registryFailed(
        doing: "open", path: path, message: "SQLite does not accept insula's file access layer")
    }
    var opened: OpaquePointer?
    let access = use == .strange ? SQLITE_OPEN_READONLY | SQLITE_OPEN_URI : SQLITE_OPEN_READWRITE
    let flags =
      access | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_EXRESCODE
    // A stranger's is read as it is: no lock, no journal of theirs that would be played back.
    let code = sqlite3_open_v2(
      use == .strange ? "file:\(file)?immutable=1" : file, &opened, flags, files.name)
    guard let opened else {
      throw .registryFailed(doing: "open", path: path, message: "out of memory")
    }
    guard code == SQLITE_OK else {
      let failure = Self.failure(code, "open", of: opened, path)
      sqlite3_close_v2(opened)
      throw failure
    }
    let database = Database(
      handle: opened, path: path, files: files, directory: directory, journal: name + "-journal",
      isBounded: use == .strange, isInMemory: false)
    try database.prepare(patience, use)
    return database
  }

  /// Copies the database of that name to memory: changes of the copy don't reach the file.
  static func copy(
    _ name: String, in directory: FD, path: String, patience: Int32
  ) throws(StoreError) -> Database {
    let source = try open(name, in: directory, path: path, patience: patience)
    return try source.copiedToMemory()
  }

  private func copiedToMemory() throws(StoreError) -> Database {
    let copy = try emptyInMemory()
    guard let backup = sqlite3_backup_init(copy.handle, "main", handle, "main") else {
      throw Self.failure(SQLITE_NOMEM, "copy", of: copy.handle, path)
    }
    let copied = sqlite3_backup_step(backup, -1)
    // What the step says is what the end says, and errors of the source are noted at the source.
    _ = sqlite3_backup_finish(backup)
    guard copied == SQLITE_DONE else {
      throw Self.failure(copied == SQLITE_OK ? SQLITE_IOERR : copied, "copy", of: handle, path)
    }
    try copy.prepare(0, .copied)
    return copy
  }

  /// One in memory that has nothing yet, and the same path in messages.
  func emptyInMemory() throws(StoreError) -> Database {
    let own = try explaining("open", path) { () throws(Errno) in try directory.fd.duplicated() }
    // They are used for nothing, but each database has its own.
    guard let files = AnchoredFiles(to: "/proc/self/fd/\(own.fd.raw)/\(journal)") else {
      throw .registryFailed(
        doing: "copy", path: path, message: "SQLite does not accept insula's file access layer")
    }
    var opened: OpaquePointer?
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE
    let code = sqlite3_open_v2(":memory:", &opened, flags | SQLITE_OPEN_EXRESCODE, nil)
    guard let opened else { throw .registryFailed(doing: "copy", path: path, message: "out of memory") }
    let copy = Database(
      handle: opened, path: path, files: files, directory: own, journal: journal, isBounded: false,
      isInMemory: true)
    try copy.check(code, "copy")
    return copy
  }

  private init(
    handle: OpaquePointer, path: String, files: consuming AnchoredFiles, directory: consuming OwnedFD,
    journal: String, isBounded: Bool, isInMemory: Bool
  ) {
    self.handle = handle
    self.path = path
    self.files = files
    self.directory = directory
    self.journal = journal
    self.isInMemory = isInMemory
    steps = isBounded ? .allocate(capacity: 1) : nil
    guard let steps else { return }
    steps.initialize(to: Self.mostSteps)
    let end: @convention(c) (UnsafeMutableRawPointer?) -> Int32 = { left in
      guard let left = left?.assumingMemoryBound(to: Int32.self) else { return 1 }
      left.pointee -= 1
      return left.pointee < 0 ? 1 : 0
    }
    sqlite3_progress_handler(handle, 10_000, end, steps)
  }

  /// In ten thousand instructions of SQLite's machine: three million rows, and, before a statement can run,
  /// some hundred thousand tables.
  private static let mostSteps: Int32 = 3000
  private static let mostStepsOfSchema: Int32 = 200

  deinit {
    sqlite3_close_v2(handle)
    steps?.deallocate()
  }

  private func prepare(_ patience: Int32, _ use: Use) throws(StoreError) {
    sqlite3_busy_timeout(handle, patience)
    sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, Self.longestValue)
    sqlite3_limit(handle, SQLITE_LIMIT_ATTACHED, 0)
    // A damaged file must not be able to do more than to be read wrongly.
    for option in [SQLITE_DBCONFIG_DEFENSIVE, SQLITE_DBCONFIG_ENABLE_FKEY] {
      try check(csqlite_set_option(handle, option, 1), "open")
    }
    // Nor anything else by its rows than what statements of ours say: we make no triggers and no views.
    for option in [
      SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW,
    ] {
      try check(csqlite_set_option(handle, option, 0), "open")
    }
    try run("PRAGMA cell_size_check = ON")
    try run("PRAGMA temp_store = MEMORY")
    switch use {
    case .kept: break
    case .copied, .strange: return
    case .new:
      try run("PRAGMA journal_mode = OFF")
      return try run("PRAGMA synchronous = OFF")
    }
    // The journal's header is overwritten to commit: removing and making the file would need an inode.
    try run("PRAGMA journal_mode = PERSIST")
    // Also what commits has reached the disk when a change is done.
    try run("PRAGMA synchronous = EXTRA")
  }

  // MARK: Statements

  /// What can be in a column.
  enum Value: Equatable, Sendable {
    case integer(Int64)
    case text(String)
    case bytes([UInt8])
    case null
  }

  /// Runs a statement; what it gives is not looked at.
  func run(_ statement: StaticString, _ values: Value...) throws(StoreError) {
    let prepared = try self.prepared([statement], values)
    while try step(prepared) {}
  }

  /// The same with a text of several constants, such as the name of a table.
  func run(_ parts: [StaticString], _ values: Value...) throws(StoreError) {
    let prepared = try self.prepared(parts, values)
    while try step(prepared) {}
  }

  /// All rows that a query gives, each as `read` understands it.
  func rows<Row>(
    _ query: StaticString, _ values: Value..., read: (Columns) throws(StoreError) -> Row
  ) throws(StoreError) -> [Row] {
    let prepared = try self.prepared([query], values)
    var rows: [Row] = []
    try each(prepared) { (columns) throws(StoreError) in
      guard steps == nil || rows.count < Self.strangeRowLimit else {
        throw .registryDamaged(path: path, what: "a table has more than \(Self.strangeRowLimit) rows")
      }
      rows.append(try read(columns))
    }
    return rows
  }

  /// What a query counts.
  func count(_ query: StaticString, _ values: Value...) throws(StoreError) -> Int64 {
    let prepared = try self.prepared([query], values)
    var count: Int64 = 0
    try each(prepared) { (columns) throws(StoreError) in count = try columns.integer(0) }
    return count
  }

  /// Looks at one row of a query after the other.
  func each(
    _ query: StaticString, _ values: [Value] = [], look: (Columns) throws(StoreError) -> Void
  ) throws(StoreError) {
    try each(try prepared([query], values), look)
  }

  private func each(
    _ statement: borrowing Statement, _ look: (Columns) throws(StoreError) -> Void
  ) throws(StoreError) {
    while try step(statement) { try look(Columns(statement.handle, path)) }
  }

  /// Does all that `body` does, or nothing; another process that wants to write meanwhile waits.
  func transaction<Result>(_ body: () throws(StoreError) -> Result) throws(StoreError) -> Result {
    let pages = try begin()
    do throws(StoreError) {
      try reservePages(beyond: pages)
      let result = try body()
      try commit()
      return result
    } catch {
      rollBack()
      throw error
    }
  }

  // These are no parts of `transaction`, of which there is one for each kind of result.

  /// Begins a transaction; gives how many pages there are.
  @inline(never)
  private func begin() throws(StoreError) -> Int64 {
    try reserveJournal()
    // Before the change begins: from then on the first page of an empty database counts.
    let pages = try number("PRAGMA page_count")
    // From the start as a writer: one who becomes it later can't wait, as both might.
    try run("BEGIN IMMEDIATE")
    return pages
  }

  @inline(never)
  private func commit() throws(StoreError) { try run("COMMIT") }

  @inline(never)
  private func rollBack() {
    // It is over already where SQLite has rolled back by itself.
    if sqlite3_get_autocommit(handle) == 0 { try? run("ROLLBACK") }
  }

  /// Makes sure that the journal is there; what room it lacks is a reason to fail only when it is needed.
  ///
  /// Beyond its end, since SQLite reads it as long as it is. SQLite makes no lock of this file, so closing a
  /// descriptor of it drops none.
  private func reserveJournal() throws(StoreError) {
    if isInMemory { return }
    try explaining("change", path) { () throws(Errno) in
      let file = try directory.fd.open(journal, O_RDWR | O_CREAT | O_NOFOLLOW, mode: 0o600)
      guard try file.fd.status().st_blocks * 512 < Self.reserve else { return }
      try? file.fd.allocate(mode: CLX_FALLOC_KEEP_SIZE, offset: 0, length: Self.reserve)
    }
  }

  /// Lets the database have blocks for what may be added to it, if there are any.
  ///
  /// Not before it has its first page: SQLite takes a file of zeros for no database.
  @inline(never)
  private func reservePages(beyond pages: Int64) throws(StoreError) {
    guard pages > 0 else { return }
    var (step, wanted) = (Int32(Self.reserve), pages * (try number("PRAGMA page_size")) + Self.reserve)
    sqlite3_file_control(handle, nil, SQLITE_FCNTL_CHUNK_SIZE, &step)
    sqlite3_file_control(handle, nil, SQLITE_FCNTL_SIZE_HINT, &wanted)
  }

  private func number(_ query: StaticString) throws(StoreError) -> Int64 {
    try rows(query) { (row) throws(StoreError) in try row.integer(0) }.first ?? 0
  }

  /// How many rows the last statement has changed.
  var changes: Int { Int(sqlite3_changes64(handle)) }

  /// The number of the row that was inserted last.
  var lastRow: Int64 { sqlite3_last_insert_rowid(handle) }

  private func prepared(_ parts: [StaticString], _ values: [Value]) throws(StoreError) -> Statement {
    steps?.pointee = Self.mostStepsOfSchema
    var prepared: OpaquePointer?
    let text = parts.map { "\($0)" }.joined()
    let code = sqlite3_prepare_v3(handle, text, Int32(clamping: text.utf8.count), 0, &prepared, nil)
    guard code == SQLITE_OK, let prepared else { throw Self.failure(code, "use", of: handle, path) }
    steps?.pointee = Self.mostSteps
    let statement = Statement(handle: prepared)
    for (value, index) in zip(values, Int32(1)...) { try check(statement.bind(value, to: index), "use") }
    return statement
  }

  private func step(_ statement: borrowing Statement) throws(StoreError) -> Bool {
    switch sqlite3_step(statement.handle) {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    case let code: throw Self.failure(code, "use", of: handle, path)
    }
  }

  private func check(_ code: Int32, _ doing: String) throws(StoreError) {
    guard code == SQLITE_OK else { throw Self.failure(code, doing, of: handle, path) }
  }

  /// A statement that is ready to run, with its values.
  private struct Statement: ~Copyable {
    let handle: OpaquePointer

    deinit { sqlite3_finalize(handle) }

    func bind(_ value: Value, to index: Int32) -> Int32 {
      switch value {
      case .null: sqlite3_bind_null(handle, index)
      case .integer(let number): sqlite3_bind_int64(handle, index, number)
      case .text(let text):
        text.withCString { csqlite_bind_text(handle, index, $0, UInt64(text.utf8.count)) }
      case .bytes(let bytes):
        bytes.withUnsafeBytes { bytes in
          bytes.baseAddress.map { csqlite_bind_blob(handle, index, $0, UInt64(bytes.count)) }
            ?? sqlite3_bind_zeroblob(handle, index, 0)
        }
      }
    }
  }

  // MARK: Failures

  private static func failure(
    _ code: Int32, _ doing: String, of handle: OpaquePointer, _ path: String
  ) -> StoreError {
    let message = sqlite3_errmsg(handle).map { String(cString: $0) } ?? "error \(code)"
    switch code {
    case AnchoredFiles.namesOtherFile:
      return .registryDamaged(
        path: path,
        what: "the journal beside it names another file, which insula never writes, so somebody else made it")
    // Whoever can't write can't take an interrupted change back.
    case SQLITE_READONLY | 3 << 8:
      return .registryFailed(
        doing: doing, path: path,
        message: "a change of it was interrupted; mount the store once where it can be written")
    default: break
    }
    return switch code & 0xff {
    case SQLITE_BUSY, SQLITE_LOCKED: .registryBusy(path: path)
    case SQLITE_CORRUPT, SQLITE_NOTADB: .registryDamaged(path: path, what: message)
    case SQLITE_FULL: .noSpace(path: path)
    case SQLITE_READONLY: .readOnly(path: path)
    case SQLITE_IOERR, SQLITE_CANTOPEN:
      StoreError(systemError(of: handle), doing: doing, path: path)
    default: .registryFailed(doing: doing, path: path, message: message)
    }
  }
}

/// What the kernel said to SQLite's last call.
private func systemError(of handle: OpaquePointer) -> Errno {
  let number = sqlite3_system_errno(handle)
  return number > 0 ? Errno(number) : .EIO
}

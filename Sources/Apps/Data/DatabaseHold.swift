// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO

/// An SQLite database that nobody changes meanwhile, so that its files can be copied as of one moment.
///
/// It takes the locks that readers of the database take. They are bytes of its files, whose meaning
/// SQLite's file format has fixed. Nothing in the database is understood or believed but two bytes of its
/// header: whoever wrote it may be hostile.
///
/// With a rollback journal, who writes waits until the hold ends: SQLite says "database is locked" after the
/// patience that a program has set. With a write-ahead log nobody waits: writers add to the log, and only its
/// way into the database is put off.
package struct DatabaseHold: ~Copyable {
  /// A file that belongs to the copy, with its name in the directory of the database.
  package struct File {
    package let name: [UInt8]
    package let fd: SharedFD
  }
  /// The database itself first.
  package let files: [File]

  private let name: [UInt8]
  private let database: SharedFD
  /// What programs share about a write-ahead log; there only while one uses the database.
  private let shared: SharedFD?

  /// The bytes that SQLite locks, in the database.
  private static let pending: Range<Int64> = 0x4000_0000..<0x4000_0001
  private static let reserved: Range<Int64> = 0x4000_0001..<0x4000_0002
  private static let readers: Range<Int64> = 0x4000_0002..<0x4000_0200
  /// In the file about the log: who moves the log into the database, and a reader of the log, who keeps it
  /// from being begun anew.
  private static let checkpoint: Range<Int64> = 121..<122
  private static let logReader: Range<Int64> = 124..<125

  private static let smallestPage = 512
  private static let magic = Array("SQLite format 3\0".utf8)

  /// Whether something can be a database by its size alone, which costs no access to it.
  package static func canBe(_ status: FileStatus) -> Bool {
    status.isRegular && status.st_size >= smallestPage && Int(status.st_size) % smallestPage == 0
  }

  /// Takes hold of a file; nil if that is no database.
  ///
  /// EBUSY if another has it for itself.
  package static func take(_ name: [UInt8], in directory: FD) throws(Errno) -> DatabaseHold? {
    let file = try directory.open(name, flags)
    guard try canBe(file.fd.status()), usesLog(file.fd) != nil else { return nil }
    try share(pending, of: file.fd)
    try share(readers, of: file.fd)
    try file.fd.unlock(pending)
    // Only now nobody can make one of the two of the other.
    guard let usesLog = usesLog(file.fd) else { return nil }
    if usesLog {
      let shared = try holdLog(of: name, in: directory)
      return DatabaseHold(name, file, [log], shared, in: directory)
    }
    // Where nobody's change is under way, a process has left the journal that died, and it belongs to the
    // database.
    let isChanged = try file.fd.isLockedByAnother(reserved)
    return DatabaseHold(name, file, isChanged ? [] : [journal], nil, in: directory)
  }

  private init(
    _ name: [UInt8], _ database: consuming OwnedFD, _ companions: [[UInt8]], _ shared: SharedFD?,
    in directory: FD
  ) {
    self.name = name
    self.database = SharedFD(database)
    self.shared = shared
    var files = [File(name: name, fd: self.database)]
    for suffix in companions {
      guard let file = try? directory.open(name + suffix, Self.flags),
        (try? file.fd.status())?.isRegular == true
      else { continue }
      files.append(File(name: name + suffix, fd: SharedFD(file)))
    }
    self.files = files
  }

  private static let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
  private static let journal = Array("-journal".utf8)
  private static let log = Array("-wal".utf8)
  private static let sharedMemory = Array("-shm".utf8)
  /// How the names of files end that SQLite puts beside a database.
  package static let suffixes = [journal, log, sharedMemory]

  /// The name of the database that a file with this name would be beside; nil for other names.
  package static func database(ofCompanion name: [UInt8]) -> [UInt8]? {
    suffixes.first { name.suffix($0.count).elementsEqual($0) }.map { Array(name.dropLast($0.count)) }
  }

  /// Nil if nobody uses the log.
  private static func holdLog(of name: [UInt8], in directory: FD) throws(Errno) -> SharedFD? {
    guard directory.has(name + sharedMemory) else { return nil }
    let file = try directory.open(name + sharedMemory, flags)
    guard try file.fd.status().isRegular else { throw .EINVAL }
    try share(checkpoint, of: file.fd)
    try share(logReader, of: file.fd)
    return SharedFD(file)
  }

  /// Whether its names still lead to what is held, and nobody has begun to use a log that nobody used.
  package func isKept(in directory: FD) -> Bool {
    func leads(_ name: [UInt8], to file: FD) -> Bool {
      guard let named = try? directory.status(of: name), let held = try? file.status() else { return false }
      return named.isSameObject(as: held)
    }
    func leads(_ file: File) -> Bool {
      (try? file.fd.use { (fd) throws(Errno) in leads(file.name, to: fd) }) == true
    }
    guard files.allSatisfy(leads) else { return false }
    guard let shared else { return !directory.has(name + Self.sharedMemory) }
    return (try? shared.use { (file) throws(Errno) in leads(name + Self.sharedMemory, to: file) }) == true
  }

  /// Nil if it is no database.
  private static func usesLog(_ file: FD) -> Bool? {
    var header = [UInt8](repeating: 0, count: 20)
    let bytes = header.withUnsafeMutableBytes { (bytes) in try? file.read(into: bytes, at: 0) }
    guard bytes == header.count, header.starts(with: magic) else { return nil }
    return header[18] == 2 || header[19] == 2
  }

  private static func share(_ bytes: Range<Int64>, of file: FD) throws(Errno) {
    guard try file.tryShare(bytes) else { throw .EBUSY }
  }
}

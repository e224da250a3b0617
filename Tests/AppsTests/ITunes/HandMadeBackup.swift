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

/// A backup in iTunes' form that is made by hand, with whatever is wrong in it.
struct HandMadeBackup {
  static let app = "org.example.editor"
  static let domain = "AppDomain-" + app
  let temporary: TemporaryDirectory
  var path: String { temporary.appending("backup") }

  /// A row of the list of files, and the data that it is about.
  struct Row {
    var path = "Documents/file"
    var id: String?
    var domain = HandMadeBackup.domain
    var flags: Int64 = 1
    var mode: UInt32 = 0o100644
    var size: Int64?
    var data: String? = "text"
    var target: String?
    var attributes: [(key: String, value: PropertyList)] = []
    /// What describes it, if not the rest.
    var archive: [UInt8]?

    static func file(_ path: String) -> Row { Row(path: path) }
    static func directory(_ path: String) -> Row { Row(path: path, flags: 2, mode: 0o40755, data: nil) }
    static func link(_ path: String, to target: String?) -> Row {
      Row(path: path, flags: 4, mode: 0o120777, data: nil, target: target)
    }

    func described() throws -> [UInt8] {
      var file = BackedUpFile(
        mode: mode, size: size ?? Int64(data?.utf8.count ?? 0), modified: 981_173_106)
      file.target = target
      file.attributes = try #require(PropertyList.Dictionary(attributes))
      return try archive ?? file.archive(of: path)
    }
  }

  init(_ rows: [Row] = [.file("Documents/file")], encrypted: Bool = false) throws {
    temporary = try TemporaryDirectory()
    try temporary.makeDirectory("backup")
    try temporary.makeDirectory("made")
    try write(PropertyList(entries: [("IsEncrypted", .boolean(encrypted))]), to: "Manifest.plist")
    try makeDatabase { database in
      try database.run("BEGIN")
      // No key, so that whatever is wanted can be in it.
      try database.run("CREATE TABLE Files (fileID TEXT, domain TEXT, relativePath TEXT, flags, file)")
      for row in rows {
        let domain = try #require(BackupDomain(HandMadeBackup.domain))
        let id = try domain.id(of: row.path.utf8)
        try database.run(
          "INSERT INTO Files VALUES (?, ?, ?, ?, ?)", .text(row.id ?? id), .text(row.domain),
          .text(row.path), .integer(row.flags), .bytes(try row.described()))
        guard row.flags == 1, let data = row.data else { continue }
        _ = mkdir("\(path)/\(id.prefix(2))", 0o755)
        try temporary.write(data, to: "backup/\(id.prefix(2))/\(id)")
      }
      try database.run("COMMIT")
    }
  }

  func write(_ list: PropertyList, to name: String) throws {
    try temporary.write(String(decoding: list.xml(), as: UTF8.self), to: "backup/\(name)")
  }

  /// Makes the list of files anew.
  func makeDatabase(_ fill: (borrowing Database) throws -> Void) throws {
    unlink("\(path)/Manifest.db")
    try temporary.write("", to: "backup/Manifest.db")
    let directory = try TemporaryDirectory.open(path)
    try fill(try Database.open("Manifest.db", in: directory.fd, path: path, patience: 0, as: .new))
  }

  func shell(_ script: String) throws {
    let result = try Program.run(["sh", "-ec", script], in: path)
    guard result.status == 0 else { throw MountedStore.Failure(words: result.errors) }
  }

  func opened() throws -> ITunesBackup {
    let directory = try TemporaryDirectory.open(path)
    return try ITunesBackup(directory.fd, path: "backup")
  }

  /// Makes the data of the app in the directory `made`.
  func make() throws {
    let backup = try opened()
    let target = try TemporaryDirectory.open(temporary.appending("made"))
    let copy = ITunesCopy(
      backup, access: .package, owner: (ProcessID.user, ProcessID.group), progress: { _ in })
    try copy.make(.app(try #require(AppIdentifier(Self.app))), in: target.fd)
  }

  /// What was made, a line for each: where, of what kind, mode, target.
  func made() throws -> [String] {
    let result = try Program.run(
      ["find", ".", "-mindepth", "1", "-printf", "%P %y %m %l\\n"], in: temporary.appending("made"))
    return result.output.split(separator: "\n").map(String.init).sorted()
  }

  /// Why it is refused, nil if it is not.
  func refusal() throws -> String? {
    do {
      try make()
      return nil
    } catch let failure as DataFailure {
      return failure.description
    }
  }
}

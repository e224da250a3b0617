// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import TestSupport
internal import Testing

/// Whose is what in a backup that root has brought back, by which no user gets what others keep from them.
@Suite(.enabled(if: Program.isRoot)) struct RestoredFilesTests {
  private let temporary: TemporaryDirectory
  private let owner: UInt32 = 64_001
  private let other: UInt32 = 64_002

  init() throws {
    temporary = try TemporaryDirectory()
    for name in ["", "/tree", "/tree/Users"] { try temporary.makeDirectory("backup\(name)") }
    let manifest =
      #"{"format":1,"insula":"1","made":1,"store":"/s","apps":[],"grants":[],"consents":[]}"#
    try temporary.write(manifest, to: "backup/manifest.json")
    try make("tree/Users/anna", of: owner)
  }

  /// Makes a file or a directory that everybody could read.
  private func make(_ path: String, of user: UInt32, _ contents: String? = nil, mode: UInt32? = nil) throws {
    let place = "backup/\(path)"
    if let contents { try temporary.write(contents, to: place) } else { try temporary.makeDirectory(place) }
    let path = temporary.appending(place)
    try #require(chown(path, user, user) == 0 && chmod(path, mode ?? (contents == nil ? 0o755 : 0o644)) == 0)
  }

  private func reduced() throws -> OthersFiles {
    let context = Context(
      environment: [:], uid: ProcessID.user, home: temporary.path, currentDirectory: temporary.path,
      console: Console(output: { _ in }, errors: { _ in }, isTerminal: false))
    let backup = try RestoredBackup(temporary.appending("backup"), context)
    return try OthersFiles(removedFrom: backup, home: "anna")
  }

  private func setACL(_ entries: [AccessControlEntry], on path: String) throws {
    let file = try FD.cwd.open(temporary.appending("backup/\(path)"), O_RDONLY)
    try SecurityAccess.package.setACL(AccessControlList(entries), on: file.fd)
  }

  /// The attack: the owner of a home gives another user's directory the name of one of their own while that
  /// is backed up.
  ///
  /// What the other's directory kept is in theirs then, by its own mode for everybody.
  @Test func whatIsOthersIsLeftOutThoughItsModeIsOpen() throws {
    let home = "tree/Users/anna"
    try make("\(home)/own", of: owner, "own")
    try make("\(home)/folder", of: owner)
    for name in ["theirs", "named", "everyones"] { try make("\(home)/folder/\(name)", of: other, "theirs") }
    try make("\(home)/folder/roots", of: 0, "theirs")
    try #require(symlink("/nowhere", temporary.appending("backup/\(home)/folder/link")) == 0)
    try #require(lchown(temporary.appending("backup/\(home)/folder/link"), other, other) == 0)
    try setACL([.init(.permit, .user(owner), .read)], on: "\(home)/folder/named")
    try setACL([.init(.permit, .everyone, .read)], on: "\(home)/folder/everyones")
    // Their own directories stay as far as something is in them.
    for name in ["way", "way/on", "way/empty", "gone"] { try make("\(home)/\(name)", of: other) }
    try make("\(home)/way/on/own", of: owner, "own")
    try make("\(home)/gone/theirs", of: other, "theirs")
    let removed = try reduced().removed
    #expect(try temporary.names(in: "backup/\(home)") == ["folder", "own", "way"])
    #expect(try temporary.names(in: "backup/\(home)/folder") == ["named"])
    #expect(try temporary.names(in: "backup/\(home)/way") == ["on"])
    #expect(temporary.text(of: "backup/\(home)/way/on/own") == "own")
    let paths = removed.first.sorted()
    let expected = [
      "folder/everyones", "folder/link", "folder/roots", "folder/theirs", "gone", "gone/theirs", "way/empty",
    ].map { "/Users/anna/\($0) (uid \($0.hasSuffix("roots") ? 0 : other))" }
    #expect(paths == expected, "\(paths)")
  }

  @Test func bundlesWithWhatIsOthersAreLeftOut() throws {
    try make("apps", of: 0)
    for (name, user) in [("aa", owner), ("bb", 0), ("cc", owner), ("dd", owner), ("ee", other)] {
      try make("apps/\(name).app", of: user)
      try make("apps/\(name).app/Contents", of: user)
      try make("apps/\(name).app/Contents/file", of: user, "file")
    }
    try make("apps/cc.app/Contents/secret", of: other, "secret")
    try make("apps/dd.app/Contents/secret", of: 0, "secret", mode: 0o600)
    let removed = try reduced().removed
    #expect(try temporary.names(in: "backup/apps") == ["aa.app", "bb.app"])
    #expect(removed.first.sorted() == ["the app cc.app", "the app dd.app", "the app ee.app"])
    #expect(temporary.text(of: "backup/apps/bb.app/Contents/file") == "file")
  }

  /// The attack: while a copy of another user's database is made, which only their directory protects, the
  /// home's owner exchanges that directory for one of their own.
  @Test func copiesOfDatabasesTakeThePlaceOfTheirOwnersFiles() throws {
    for top in ["databases", "databases/Users", "databases/Users/anna"] { try make(top, of: 0) }
    for (name, user) in [("own", owner), ("exchanged", other), ("gone", other)] {
      try make("databases/Users/anna/\(name).db", of: user, "copy")
      try make("databases/Users/anna/\(name).db-wal", of: user, "copy")
    }
    for name in ["own.db", "own.db-journal", "exchanged.db", "exchanged.db-wal"] {
      try make("tree/Users/anna/\(name)", of: owner, "read")
    }
    let backup = try TemporaryDirectory.open(temporary.appending("backup"))
    let failed = try RestoredDatabases.move(in: backup.fd)
    #expect(failed == ["Users/anna/exchanged.db: the file of that name is another user's"], "\(failed)")
    let names = try temporary.names(in: "backup/tree/Users/anna")
    #expect(names == ["exchanged.db", "exchanged.db-wal", "own.db", "own.db-wal"])
    for (name, text) in [("own.db", "copy"), ("own.db-wal", "copy"), ("exchanged.db", "read")] {
      #expect(temporary.text(of: "backup/tree/Users/anna/\(name)") == text, "\(name)")
    }
    #expect(temporary.text(of: "backup/tree/Users/anna/exchanged.db-wal") == "read")
  }
}

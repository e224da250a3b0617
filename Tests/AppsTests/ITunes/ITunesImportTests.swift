// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Apps
internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy
internal import PropertyLists
@testable internal import Store
internal import TestSupport
internal import Testing

// What whoever made a backup may try:
//
// - have something written outside of the container, or read outside of the backup: `rowsAreRefused`,
//   `dataAreRefused`
// - lead through links of theirs: `linksAreDataAndLeadNowhere`
// - get programs with more rights: `modesAreWithoutSetID`
// - have the user see another file than the one that a reader of theirs shows: `namesAreTheirBytes`
// - have SQLite work for them, or for ever: `databasesAreRefused`, `noTreeOfPagesIsEndless`,
//   `noDamageStopsTheReader`
// - have the reader of archives follow them in circles: `archivesAreRefused`, `noArchiveStopsTheReader`

/// Backups in iTunes' form, from honest and from other people.
struct ITunesImportTests {
  private typealias Row = HandMadeBackup.Row

  @Test func whatIsListedIsMade() throws {
    let backup = try HandMadeBackup([
      .directory(""), .directory("Documents"), .file("Documents/file"), .file("Library/a/b/c"),
      .link("Documents/link", to: "../x"), .directory("Documents/file-2"), .file("Documents/file-2/x"),
      .file(".profile"), .directory("Library"), .file("SystemData/x"), .file("StoreKit/x"),
      Row(path: "Documents/empty", data: nil), Row(path: "x", domain: "HomeDomain"),
      Row(path: "../../x", domain: "AppDomain-org.example.other"),
    ])
    #expect(try backup.refusal() == nil)
    #expect(
      try backup.made() == [
        ".profile f 644 ", "Documents d 755 ", "Documents/empty f 644 ", "Documents/file f 644 ",
        "Documents/file-2 d 755 ", "Documents/file-2/x f 644 ", "Documents/link l 777 ../x", "Library d 755 ",
        "Library/a d 700 ", "Library/a/b d 700 ", "Library/a/b/c f 644 ",
      ])
    var status = FileStatus()
    #expect(lstat(backup.temporary.appending("made/Documents/file"), &status) == 0)
    #expect(status.st_mtim.tv_sec == 981_173_106)
    #expect(try backup.opened().apps.map(\.text) == ["org.example.editor", "org.example.other"])
    #expect(try backup.opened().hasOthers)
  }

  /// The name of the data, as other programs work it out.
  @Test func idIsTheSHA1OfThePath() throws {
    let domain = try #require(BackupDomain(HandMadeBackup.domain))
    #expect(try domain.id(of: "Documents/file".utf8) == "ebf56b5bd80b5597181a14e97e1558d9db20787f")
  }

  private static let id = "ebf56b5bd80b5597181a14e97e1558d9db20787f"

  private static let rows: [(String, [HandMadeBackup.Row], String)] = [
    ("up", [Row(path: "Documents/../../../out")], "not one that a file"),
    ("up at the start", [Row(path: "..")], "not one that a file"),
    ("dot", [Row(path: "Documents/./x")], "not one that a file"),
    ("absolute", [Row(path: "/Documents/x")], "not one that a file"),
    ("no name", [Row(path: "Documents//x")], "not one that a file"),
    ("slash at the end", [Row(path: "Documents/x/")], "not one that a file"),
    ("empty", [Row(path: "")], "not one that a file"),
    ("zero", [Row(path: "Documents/a\0b")], "not one that a file"),
    ("long name", [Row(path: "Documents/" + String(repeating: "n", count: 256))], "not one that a file"),
    ("deep", [Row(path: "Documents" + String(repeating: "/d", count: 300))], "more than 250 directories"),
    ("twice", [.file("Documents/a"), .file("Documents/a")], "lists it twice"),
    ("as file and directory", [.file("Documents/a"), .directory("Documents/a")], "lists it twice"),
    ("in a file", [.file("Documents/a"), .file("Documents/a/b")], "in something that is no directory"),
    (
      "in a link", [.link("Documents/a", to: "/nonexistent"), .file("Documents/a/b")], "that is no directory"
    ),
    (
      "no directory", [.link("Documents", to: "/nonexistent")],
      "'Documents' of \(HandMadeBackup.domain) is not"
    ),
    ("other id", [Row(id: "ebf56b5bd80b5597181a14e97e1558d9db20787e")], "not the SHA-1 of its path"),
    ("id that leads out", [Row(id: "../../../../out")], "not the SHA-1 of its path"),
    ("id with more", [Row(id: Self.id + "/x")], "not the SHA-1 of its path"),
    ("capital id", [Row(id: Self.id.uppercased())], "not the SHA-1 of its path"),
    ("negative size", [Row(size: -1)], "lacks a mode, size or time"),
    ("other kind", [Row(flags: 2)], "of another kind than its flags say"),
    ("device", [Row(mode: 0o020644)], "not that of a file, directory or link"),
    ("fifo", [Row(mode: 0o010644)], "not that of a file, directory or link"),
    ("mode without end", [Row(mode: 0o7_100_644)], "lacks a mode, size or time"),
    ("no target", [.link("Documents/a", to: nil)], "a link without a target"),
    ("empty target", [.link("Documents/a", to: "")], "a link without a target"),
    ("target with a zero", [.link("Documents/a", to: "a\0b")], "a link without a target"),
    ("ACL", [Row(attributes: [("com.apple.system.Security", .data([1, 2, 3]))])], "its ACL can't be read"),
    ("flags", [Row(attributes: [("org.insula.flags", .data([0xff]))])], "its flags can't be read"),
    ("attribute", [Row(attributes: [("x", .integer(1))])], "extended attributes can't be read"),
  ]

  @Test(arguments: rows.indices) func rowsAreRefused(index: Int) throws {
    let (name, rows, words) = Self.rows[index]
    let backup = try HandMadeBackup(rows)
    let refusal = try backup.refusal()
    #expect(refusal?.contains(words) == true, "\(name): \(refusal ?? "accepted")")
    #expect(try backup.temporary.names() == ["backup", "made"], "\(name)")
  }

  @Test func namesAreTheirBytes() throws {
    let backup = try HandMadeBackup([
      .file("Documents/a"), .file("Documents/A"), .file("Documents/\u{e9}"), .file("Documents/e\u{301}"),
    ])
    #expect(try backup.refusal() == nil)
    #expect(try backup.temporary.names(in: "made/Documents").count == 4)
  }

  @Test func linksAreDataAndLeadNowhere() throws {
    let secret = try TemporaryDirectory()
    try secret.write("secret", to: "file")
    let backup = try HandMadeBackup([
      .link("Documents/out", to: secret.path), .link("Documents/loop", to: "."),
      .link("Library/Preferences", to: "../../../../../.."),
    ])
    #expect(try backup.refusal() == nil)
    #expect(try backup.made().filter { $0.contains(" l ") }.count == 3)
    #expect(try secret.names() == ["file"])
  }

  @Test func modesAreWithoutSetID() throws {
    let backup = try HandMadeBackup([
      Row(path: "Documents/u", mode: 0o106755), Row(path: "Documents/d", flags: 2, mode: 0o43777, data: nil),
      Row(path: "Documents/none", flags: 2, mode: 0o40000, data: nil), .file("Documents/none/x"),
    ])
    #expect(try backup.refusal() == nil)
    let made = try backup.made()
    #expect(made.contains("Documents/u f 755 ") && made.contains("Documents/d d 1777 "), "\(made)")
    #expect(made.contains("Documents/none d 0 "), "\(made)")
  }

  @Test func attributesComeOver() throws {
    let backup = try HandMadeBackup([
      Row(attributes: [
        ("org.insula.flags", .data(Array("uchg,hidden".utf8))), ("com.example.tag", .data(Array("v".utf8))),
        ("insula.acl", .data([1])), ("com.apple.system.other", .data([1])),
      ])
    ])
    #expect(try backup.refusal() == nil)
    let found = try Program.run(
      ["getfattr", "-d", "--absolute-names", backup.temporary.appending("made/Documents/file")])
    #expect(found.output.contains("user.com.example.tag=\"v\""), "\(found)")
    #expect(found.output.contains("user.org.insula.flags=\"") && !found.output.contains("other"), "\(found)")
    #expect(!found.output.contains("user.insula.acl"), "\(found)")
  }

  // MARK: Data

  @Test(arguments: [
    ("rm $f", "its data are not in the backup"), ("rm -r eb", "its data are not in the backup"),
    ("echo more >>$f", "not as long as the backup says"), ("truncate -s 3 $f", "not as long as"),
    ("mv $f ../x; ln -s ../../x $f", "not in a file"), ("rm $f; mkfifo $f", "not in a file"),
    ("rm $f; mkdir $f", "not in a file"), ("mv eb ../eb; ln -s ../eb eb", "not in a file"),
    ("rm -r eb; echo x >eb", "not in a file"), ("rm $f; mknod $f c 1 5", "not in a file"),
    ("rm -r eb; mkfifo eb", "not in a file"),
  ])
  func dataAreRefused(damage: String, words: String) throws {
    if damage.contains("mknod"), !Program.isRoot { return }
    let backup = try HandMadeBackup()
    try backup.shell("f=eb/\(Self.id); \(damage)")
    let refusal = try backup.refusal()
    #expect(refusal?.contains(words) == true, "\(damage): \(refusal ?? "accepted")")
  }

  @Test(arguments: [
    ("rm Manifest.plist", "it has no Manifest.plist"), ("echo x >Manifest.plist", "Manifest.plist can't be"),
    ("rm Manifest.plist; mkfifo Manifest.plist", "Manifest.plist can't be read"),
    ("mv Manifest.plist x; ln -s x Manifest.plist", "Manifest.plist can't be read"),
    ("echo '<plist><dict/></plist>' >Manifest.plist", "does not say whether it is encrypted"),
    ("rm Manifest.db", "it has no Manifest.db"), ("rm Manifest.db; mkfifo Manifest.db", "is not a file"),
    ("mv Manifest.db x; ln -s x Manifest.db", "is not a file"), ("echo x >Manifest.db", "not a database"),
    (": >Manifest.db", "it has no table Files"), ("echo x >Manifest.db-journal", "in the middle of a change"),
    ("echo x >Manifest.db-wal", "in the middle of a change"),
    ("truncate -s 5000 Manifest.db", ": Manifest.db: "),
    (
      "echo '<plist><dict><key>SnapshotState</key><string>uploading</string></dict></plist>' >Status.plist",
      "it was not finished"
    ),
  ])
  func whatIsNoBackupIsRefusedByName(damage: String, words: String) throws {
    let backup = try HandMadeBackup()
    try backup.shell(damage)
    let refusal = try backup.refusal()
    #expect(refusal?.contains(words) == true, "\(damage): \(refusal ?? "accepted")")
    #expect(try backup.made().isEmpty)
  }

  @Test func encryptedBackupsAreRefusedInWords() throws {
    let refusal = try HandMadeBackup(encrypted: true).refusal()
    #expect(refusal?.contains("encrypted backup, which insula can't read; make one without") == true)
  }

  /// Nothing is written, whatever the database asks for.
  @Test func databaseStaysAsItIs() throws {
    let backup = try HandMadeBackup()
    // Ours makes no write-ahead log.
    try backup.shell(
      """
      rm -f Manifest.db*
      sqlite3 Manifest.db 'PRAGMA journal_mode = WAL;
        CREATE TABLE Files (fileID TEXT, domain TEXT, relativePath TEXT, flags, file)' >/dev/null
      rm -f Manifest.db-*; chmod a-w . Manifest.db
      """)
    try backup.shell("find . -type f | sort | xargs sha1sum >../before")
    _ = try backup.refusal()
    try backup.shell("find . -type f | sort | xargs sha1sum >../after; chmod u+w .")
    #expect(backup.temporary.text(of: "before") == backup.temporary.text(of: "after"))
  }
}

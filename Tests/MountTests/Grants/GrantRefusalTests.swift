// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What can't be granted, and what everyone is told about that.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct GrantRefusalTests {
  private func run(_ fixture: RunFixture, as account: Account? = nil, _ script: String) throws
    -> ProgramResult
  {
    let home = fixture.mounted.path("Users/\(fixture.user.name)")
    return try fixture.shell(
      "HOUSE='\(home)'; D=\"$HOUSE/Documents\"; L=\"$HOUSE/Library\"\n" + script, as: account)
  }

  /// What is asked for, what it ends with, and a part of what is said.
  private static let refusals: [(String, Int32, String)] = [
    ("$APP /etc/passwd", 1, "is not in the tree"), ("$APP $POINT", 1, "is the whole tree"),
    ("$APP $POINT/..", 1, "is not in the tree"), ("$APP $D/missing", 1, "can't find"),
    ("org.example.unknown $D", 1, "the app org.example.unknown is not"),
    ("'no app' $D", 1, "no app is called 'no app'"),
    ("$APP", 2, "PATH is missing"), ("$APP $D --read-only --read-write", 2, "can't be combined"),
    ("$APP $POINT/System", 7, "every app can read"), ("$APP $POINT/System/Library", 7, "every app can read"),
    ("$APP $POINT/Applications/Notes.app", 1, "read-only"),
    ("$APP $POINT/Applications/Notes.app/Contents/Info.plist", 1, "read-only"),
    ("$APP $POINT/Users", 7, "more than one"), ("$APP $POINT/Applications", 7, "more than one"),
    ("$APP $POINT/Library", 7, "more than one"), ("$APP $HOUSE", 7, "more than one"),
    ("$APP $L", 7, "more than one"), ("$APP $L/Containers", 7, "more than one"),
    ("$APP $L/Containers/org.example.notes/Data/Documents", 7, "which it can use anyway"),
    ("$APP $L/Containers/org.example.other/Data/Library", 7, "data of another app"),
    ("$APP $L/Containers/org.example.other", 7, "data of another app"),
    ("$APP $D/fifo", 1, "neither a file nor a directory"), ("$APP $D/closed", 7, "let an app read"),
    ("$APP $D/readable --read-write", 7, "let an app write"), ("$APP $D/closed-directory/x", 7, "can't find"),
    ("$APP $D --user root", 7, "only root"),
    ("$APP $D/$(printf 'x%.0s' $(seq 256))", 1, "can't find"),
  ]

  @Test func isSaidByName() throws {
    let fixture = try RunFixture()
    try fixture.install("Other")
    let made = try run(
      fixture,
      """
      insula path org.example.other documents > /dev/null; insula path $APP documents > /dev/null
      mkfifo $D/fifo; echo x > $D/closed; chmod 0 $D/closed; echo x > $D/readable; chmod 400 $D/readable
      mkdir -p $L/Preferences $D/closed-directory; echo x > $D/closed-directory/x; chmod 0 $D/closed-directory
      """)
    try #require(made.status == 0, "\(made.errors)")
    for (words, status, message) in Self.refusals {
      let result = try run(fixture, "insula grant \(words)")
      #expect(result.status == status, "\(words): \(result.output)\(result.errors)")
      #expect(result.errors.contains(message), "\(words): \(result.errors)")
    }
    #expect(try run(fixture, "insula grants").output == "There are no grants.\n")
    // And what can: another app's documents; what all share; one good one among bad ones.
    for words in [
      "$D/readable", "$L/Containers/org.example.other/Data/Documents", "$POINT/Users/Shared",
      "$D/fifo $D/readable",
      "$L/Preferences", "$D/readable --read-only",
    ] {
      let result = try run(fixture, "insula grant $APP \(words)")
      #expect(result.output.contains(" may read "), "\(words): \(result.errors)")
    }
    let listed = try run(fixture, "insula grants | tail -n +2 | wc -l; insula grants")
    #expect(listed.output.hasPrefix("4\n"), "\(listed.output)")
  }

  /// Who has been granted too much is told, and so is whoever looks after the machine.
  @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/sqlite3"), "needs sqlite3"))
  func tooMuchIsInTheStatusAndTheLog() throws {
    let fixture = try RunFixture()
    let first = try run(fixture, "echo x > $D/first; echo x > $D/last; insula grant $APP $D/first")
    try #require(first.status == 0, "\(first.errors)")
    let many = try Program.run([
      "sqlite3", "-cmd", ".timeout 20000", fixture.mounted.store + "/state/insula.db",
      """
      WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
      INSERT INTO grants (identifier, user, team, path, writable, directory, inode, handle, created, granted)
      SELECT identifier, user, team, CAST('Users/Shared/' || i AS BLOB), 0, 0, 1, handle, 1, 1 FROM grants, n
      """,
    ])
    try #require(many.status == 0, "\(many.errors)")
    for _ in 0..<2 {
      let refused = try run(fixture, "insula grant $APP $D/last")
      #expect(refused.status == 1 && refused.errors.contains("as many grants as"), "\(refused.errors)")
    }
    let status = try run(fixture, "\"$INSULA\" status --json \"$POINT\"").output
    #expect(status.contains("overBudget") && status.contains("\"grants\""), "\(status)")
    let log = try String(contentsOfFile: fixture.mounted.store + "/state/daemon.log", encoding: .utf8)
    let lines = log.split(separator: "\n").filter {
      $0.contains("user \(fixture.user.uid) has reached the limit for grants")
    }
    #expect((1...2).contains(lines.count), "\(log)")
  }

  /// Clients that are not our own command.
  private static let requests: [(String, String)] = [
    (#"{"verb":"grant"}"#, "a field of the request is missing"),
    (
      #"{"verb":"grant","grant":{"action":"grant","identifier":"org.example.notes"}}"#,
      "a field of the request is missing"
    ),
    (#"{"verb":"grant","grant":{"action":"grant","path":"Users"}}"#, "a field of the request is missing"),
    (#"{"verb":"grant","grant":{"action":"steal"}}"#, "does not know this request"),
    (#"{"verb":"grants","identifier":"../x"}"#, "a field of the request is missing"),
    (#"{"verb":"grants","after":-1}"#, #""ok":true"#),
    (#"{"verb":"grants","after":1e99}"#, "does not know this request"),
    (grant("Users/NAME/Documents/../../../../etc"), "can't be granted"), (grant(""), "more than one"),
    (grant("Users/NAME/Documents/link"), "symbolic link"), (grant("Users/NAME/link/file"), "symbolic link"),
    (grant("Users/NAME/Documents/file/x"), "does not exist"),
    (grant("Users/NAME/Documents/file", #","inode":7"#), "being replaced"),
    (grant("Users/NAME/Documents/file", #","user":0"#), "only root"),
    (grant("Users/NAME/Documents/a\\u0000b"), "can't be granted"),
    (grant(String(repeating: "a/", count: 3000)), "can't be granted"),
    (grant("/Users//NAME/Documents/file/"), #""ok":true"#),
  ]

  private static func grant(_ path: String, _ more: String = "") -> String {
    #"{"verb":"grant","grant":{"action":"grant","identifier":"org.example.notes","path":"\#(path)"\#(more)}}"#
  }

  @Test func daemonBelievesNothing() throws {
    let fixture = try RunFixture()
    let made = try run(
      fixture, "echo x > $D/file; ln -s file $D/link; ln -s Documents $HOUSE/link; echo $POINT")
    try #require(made.status == 0, "\(made.errors)")
    for (request, expected) in Self.requests {
      let line = request.replacing("NAME", with: fixture.user.name)
      let answer = try fixture.ask(line)
      #expect(answer.contains(expected), "\(line.prefix(300)): \(answer)")
    }
    #expect(try run(fixture, "insula grants | wc -l").output == "2\n")
  }
}

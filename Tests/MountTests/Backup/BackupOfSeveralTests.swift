// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing

// What a hostile user may try with a backup of everybody's that root makes and restores:
//
// - be given what others have granted or allowed: `rightsComeBackToWhoeverHadThem`

/// Backups of several users.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct BackupOfSeveralTests {
  private let fixture: BackupFixture
  private let other: TemporaryAccount

  init() throws {
    fixture = try BackupFixture()
    other = try TemporaryAccount()
    try fixture.run.succeed("user", "add", other.account.name, "--store", fixture.run.mounted.store)
  }

  private var users: [Account] { [fixture.run.user, other.account] }

  @Test func rightsComeBackToWhoeverHadThem() throws {
    let (one, two) = (fixture.run.user, other.account)
    _ = try fixture.succeed(
      """
      cd "$POINT/Users/\(one.name)/Documents"; mkdir One; "$INSULA" grant $APP One --store "$POINT"
      mkdir "$POINT/Users/Shared/common"; chmod 777 "$POINT/Users/Shared/common"
      "$INSULA" grant $APP "$POINT/Users/Shared/common" --read-write --store "$POINT"
      "$INSULA" consent allow $APP contacts --store "$POINT"
      """)
    _ = try fixture.succeed(
      """
      cd "$POINT/Users/\(two.name)/Documents"; mkdir Two; "$INSULA" grant $APP Two --store "$POINT"
      "$INSULA" consent deny $APP contacts --store "$POINT"
      "$INSULA" consent allow $APP photos --store "$POINT"
      """, as: two)
    let show = "\"$INSULA\" grants --store \"$POINT\"; \"$INSULA\" consent list --store \"$POINT\""
    let before = try users.map { try fixture.succeed(show, as: $0) }
    try #require(before[0].contains("common") && before[1].contains("Two"), "\(before)")
    _ = try fixture.succeed("init; backup now --store \"$POINT\"", as: RunFixture.root)
    // Everything, and one user alone.
    for more in ["", "--user \(two.name)"] {
      for user in users {
        _ = try fixture.shell(
          "cd \"$POINT\"; \"$INSULA\" revoke $APP --all --store .; \"$INSULA\" consent reset $APP --store .",
          as: user)
      }
      let restored = try fixture.shell(
        "backup restore --to \"$POINT\" --replace --rights \(more)", as: RunFixture.root)
      #expect(restored.status == 0, "\(restored.output)\(restored.errors)")
      let now = try users.map { try fixture.succeed(show, as: $0) }
      #expect(Self.facts(now[1]) == Self.facts(before[1]), "\(now[1])")
      #expect(Self.facts(now[0]) == (more.isEmpty ? Self.facts(before[0]) : []), "\(now[0])")
    }
  }

  /// Without the times.
  private static func facts(_ text: String) -> [String] {
    text.split(separator: "\n").filter { $0.contains("org.example") }.map { line in
      line.split(separator: " ").filter { !$0.contains(":") }.joined(separator: " ")
    }.sorted()
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Root's `insula run --user`: nothing of root's goes along.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct RunAsSomeoneTests {
  /// What `/proc/PID` tells of the process that waits for the app, while root's shell has more than it
  /// should.
  private func look(_ fixture: RunFixture, _ line: String) throws -> ProgramResult {
    let secret = try fixture.mounted.temporary.write("secret", to: "secret-of-roots")
    return try fixture.shell(
      """
      cd /root; exec 9<\(secret)
      setpriv --groups 4242 "$INSULA" run --store "$POINT" "$APP" --user \(fixture.user.name) -- sleep 60 &
      running 1; sleep 0.2; pid=$(insula ps --json | sed -n 's/.*"pid" : \\([0-9]*\\).*/\\1/p'); cd /proc/$pid
      \(line)
      insula kill "$APP"; wait
      """, as: RunFixture.root)
  }

  @Test func groupsAreTheUsersOwn() throws {
    let group = try TemporaryGroup()
    let fixture = try RunFixture(groups: [group])
    let gid = try #require(AccountGroup.named(group.name)).gid
    let seen = try look(fixture, "sed -n 's/^Groups:\\t//p' status")
    let groups = Set(seen.output.split(whereSeparator: \.isWhitespace).map(String.init))
    #expect(groups == ["\(fixture.user.gid)", "\(gid)"], "\(seen.output)\(seen.errors)")
  }

  @Test func surroundingsAreTheUsersOwn() throws {
    let fixture = try RunFixture()
    let seen = try look(fixture, "tr '\\0' '\\n' <environ; echo; readlink cwd; readlink fd/*; cat comm")
    let words = Set(seen.output.split(separator: "\n").map(String.init))
    #expect(!seen.output.contains("SECRET=") && words.contains("LOGNAME=\(fixture.user.name)"))
    #expect(words.contains("/") && words.contains("insula"), "\(seen.output)\(seen.errors)")
    #expect(seen.output.contains("socket:") && !seen.output.contains("secret-of-roots"), "\(seen.output)")
  }
}

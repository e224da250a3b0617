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
  private func look(_ house: RunHouse, _ line: String) throws -> ProgramResult {
    let secret = try house.mounted.temporary.write("secret", to: "secret-of-roots")
    return try house.shell(
      """
      cd /root; exec 9<\(secret)
      setpriv --groups 4242 "$INSULA" run --store "$POINT" "$APP" --user \(house.user.name) -- sleep 60 &
      running 1; sleep 0.2; pid=$(insula ps --json | sed -n 's/.*"pid" : \\([0-9]*\\).*/\\1/p'); cd /proc/$pid
      \(line)
      insula kill "$APP"; wait
      """, as: RunHouse.root)
  }

  @Test func groupsAreTheUsersOwn() throws {
    let group = try TemporaryGroup()
    let house = try RunHouse(groups: [group])
    let gid = try #require(AccountGroup.named(group.name)).gid
    let seen = try look(house, "sed -n 's/^Groups:\\t//p' status")
    let groups = Set(seen.output.split(whereSeparator: \.isWhitespace).map(String.init))
    #expect(groups == ["\(house.user.gid)", "\(gid)"], "\(seen.output)\(seen.errors)")
  }

  @Test func surroundingsAreTheUsersOwn() throws {
    let house = try RunHouse()
    let seen = try look(house, "tr '\\0' '\\n' <environ; echo; readlink cwd; readlink fd/*; cat comm")
    let words = Set(seen.output.split(separator: "\n").map(String.init))
    #expect(!seen.output.contains("SECRET=") && words.contains("LOGNAME=\(house.user.name)"))
    #expect(words.contains("/") && words.contains("insula"), "\(seen.output)\(seen.errors)")
    #expect(seen.output.contains("socket:") && !seen.output.contains("secret-of-roots"), "\(seen.output)")
  }
}

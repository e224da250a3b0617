// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A person chooses a file for an app.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct OpenPanelTests {
  /// Runs a call of the app's with an agent that chooses a letter in the user's Documents.
  private func choose(
    _ fixture: ConsentFixture, _ answers: String,
    call: String = #"{"verb":"open-panel","panel":{"kind":"file","types":[]}}"#
  ) throws -> ProgramResult {
    let name = fixture.fixture.user.name
    return try fixture.shell(
      """
      echo dear > "$POINT/Users/\(name)/Documents/letter"; echo told > "$POINT/Users/\(name)/Documents/other"
      inode=$(stat -c %i "$POINT/Users/\(name)/Documents/letter"); letter=Users/\(name)/Documents/letter
      agent \(answers)
      insula run --env HOME_OF_USER='\(fixture.home)' \(ConsentFixture.player) -- python3 -c '
      import json, os, socket, sys
      s = socket.socket(socket.AF_UNIX)
      s.connect(os.environ["INSULA_SOCKET"])
      s.sendall((sys.argv[1] + "\\n").encode())
      reply = json.loads(s.makefile().readline())
      print(reply.get("errno"), [g["path"] for g in reply.get("grants", [])])
      for name in ("letter", "other"):
          try: print(open(os.environ["HOME_OF_USER"] + "/Documents/" + name).read().strip())
          except OSError as e: print(e.errno)
      ' '\(call)'
      wait $agentpid; cat $agent
      """)
  }

  @Test(arguments: [false, true])
  func chosenFileIsGranted(rootless: Bool) throws {
    let fixture = try ConsentFixture(rootless: rootless)
    let name = fixture.fixture.user.name
    let result = try choose(fixture, "\"choose:$letter#$inode\"")
    #expect(result.output.hasPrefix("None ['Users/\(name)/Documents/letter']\ndear\n2\n"), "\(result)")
    #expect(result.output.hasSuffix("done\n"), "\(result)")
    #expect(try fixture.shell("insula grants \(ConsentFixture.player)").output.contains("Documents/letter"))
  }

  /// What is at the path must be what the person has seen there.
  @Test func nothingElseIsGranted() throws {
    let fixture = try ConsentFixture()
    let other = try choose(fixture, "\"choose:$letter#1\"")
    #expect(other.output.contains("failed"), "\(other)")
    #expect(other.output.split(separator: "\n").dropFirst().first == "2", "\(other)")
    // 125 is ECANCELED. After that nobody is asked at once.
    let cancelled = try fixture.shell("sleep 11; true")
    #expect(cancelled.status == 0)
    #expect(try choose(fixture, "dismiss").output.hasPrefix("125 []\n2\n2\n"))
    #expect(
      try fixture.shell("insula grants \(ConsentFixture.player) --json").output.contains("letter") == false)
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Fuse
internal import Testing

/// What users are told of a program that can't serve a volume.
@Suite struct EngineOutputTests {
  @Test(arguments: [
    ("", ""), ("read: Connection reset by peer\n", "read: Connection reset by peer"),
    ("1\n2\n3\n4\n5\n", "2; 3; 4; 5"),
    (
      """
      [2026-11-27 23:51:10.2 +0000] I [io-stats.c:3701:ios_configure] 0-shared: sample_buf size is 1024
      [2026-11-27 23:51:10.3 +0000] E [MSGID: 114044] [client.c:7:set] 0-s-1: SETVOLUME failed [{errno=2}]
      [2026-11-27 23:51:10.4 +0000] E [fuse-bridge.c:6552:notify] 0-fuse: Shutting down.

      """, "SETVOLUME failed [{errno=2}]"
    ),
    ("[a] E [b] 0-fuse: Shutting down.", "Shutting down."),
    ("[x] W [y] 0-a: slow", "[x] W [y] 0-a: slow"), ("[x] E", "[x] E"), ("[E", "[E"),
    ("[]E[] E: ", "[]E[] E: "),
  ])
  func causeIsTold(said: String, told: String) {
    #expect(EngineOutput(Array(said.utf8)).text == told)
  }
}

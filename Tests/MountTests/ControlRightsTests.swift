// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing

/// What a user's own program asks of the daemon about others; our commands don't even ask.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct ControlRightsTests {
  private static let requests: [(String, String)] = [
    (#"{"verb":"unmount"}"#, "only root"),
    (#"{"verb":"unmount","lazily":true}"#, "only root"),
    (#"{"verb":"apps","user":OTHER}"#, "only root"), (#"{"verb":"apps","user":0}"#, "only root"),
    (#"{"verb":"app","identifier":"org.example.notes","user":OTHER}"#, "only root"),
    (#"{"verb":"grants","user":OTHER}"#, "only root"), (#"{"verb":"grants","user":0}"#, "only root"),
    (#"{"verb":"grants"}"#, #""grants":[]"#),
    (#"{"verb":"run","identifier":"org.example.notes","user":OTHER}"#, "runs as the user who starts it"),
    (#"{"verb":"running"}"#, #""running":[]"#), (#"{"verb":"running","user":OTHER}"#, #""running":[]"#),
    (#"{"verb":"end","identifier":"org.example.notes","user":OTHER}"#, "is not running"),
    (#"{"verb":"ended","status":0}"#, "is not the one that runs it"),
    (#"{"verb":"end","identifier":"org.example.notes","user":OTHER,"signal":9}"#, "is not running"),
  ]

  @Test func nobodyAsksAboutOthers() throws {
    let fixture = try RunFixture()
    let stranger = try TemporaryAccount()
    let documents = "\(fixture.mounted.point)/Users/\(fixture.user.name)/Documents"
    let prepared = try fixture.shell(
      """
      echo x > \(documents)/file; insula grant $APP \(documents)/file
      run sleep 600 > /dev/null 2>&1 < /dev/null & running 1
      """)
    try #require(prepared.status == 0, "\(prepared.errors)")
    for (request, expected) in Self.requests {
      let line = request.replacing("OTHER", with: "\(fixture.user.uid)")
      let answer = try fixture.ask(line, as: stranger.account)
      #expect(answer.contains(expected), "\(line): \(answer)")
    }
    // All is still there: the mount, what was granted, and what runs.
    #expect(try fixture.ask(#"{"verb":"running"}"#).contains("org.example.notes"))
    #expect(try fixture.shell("insula kill $APP").status == 0)
    #expect(try fixture.ask(#"{"verb":"grants"}"#).contains("Documents\\/file"))
  }
}

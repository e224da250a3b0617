// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// `insula top`, at a terminal and without one.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct TopScreenTests {
  private static let talk = Checkout.path("Tests/Fixtures/talk-at-a-terminal.py")

  private static let entered = "\\x1b\\[\\?1049h[^$]*round trip[^$]*q end"
  private static let left = "\\x1b\\[\\?25h\\x1b\\[\\?1049l"
  /// How the terminal is set after it.
  private static let settings = ("stty -a | grep -o ' [-]*icanon\\| [-]*echo '", " icanon\\s+ echo ")

  /// What is typed at a shell, and what is to be seen after each; `$T` is the screen.
  private func talk(_ fixture: RunFixture, _ steps: [(typed: String, word: String)]) throws {
    let words = steps.flatMap { [$0.typed, $0.word] }.map { "'" + $0.replacing("'", with: "'\\''") + "'" }
    let result = try fixture.shell(
      """
      export T="$INSULA top --store $POINT -i 0.3" TERM=xterm
      exec timeout 900 /usr/bin/python3 \(Self.talk) \(words.joined(separator: " "))
      """, as: RunFixture.root)
    #expect(result.status == 0, "\(result.output)\(result.errors)")
  }

  @Test func terminalIsAsItWasAfterEveryEnd() throws {
    let fixture = try RunFixture()
    let store = fixture.mounted.store
    let end = "(sleep 1; kill -NAME $(pgrep -P $$ -x insula)) & $T; echo ended $?"
    try talk(
      fixture,
      [
        ("$T", Self.entered), ("q", Self.left), Self.settings,
        ("$T", Self.entered), ("^C", Self.left), ("echo ended $?", "ended 130"), Self.settings,
        ("$T", Self.entered), ("^\\", Self.left), ("echo ended $?", "ended 131"), Self.settings,
        ("$T", Self.entered), ("^Z", Self.left + "[^$]*Stopped"), Self.settings, ("fg", Self.entered),
        ("SIZE", "\\x1b\\[31;1H"), ("q", Self.left), Self.settings,
        (end.replacing("NAME", with: "TERM"), Self.entered), ("", Self.left), ("", "ended 143"),
        Self.settings,
        (end.replacing("NAME", with: "HUP"), Self.entered), ("", "ended 129"), Self.settings,
        ("$T &", "Stopped|> "), ("sleep 1; jobs", "Stopped"), ("fg", Self.entered), ("q", Self.left),
        Self.settings,
        ("(sleep 1; $INSULA unmount \(store)) & $T; echo ended $?", Self.entered),
        ("", Self.left + "[^$]*is mounted"), ("", "ended 6"), Self.settings,
      ])
  }

  @Test func listIsSortedAndMoved() throws {
    let fixture = try RunFixture()
    try fixture.install("Aaa")
    let run = "$INSULA run --store $POINT --user \(fixture.user.name)"
    try talk(
      fixture,
      [
        ("\(run) Aaa -- sleep 1000 2>/dev/null & \(run) Notes -- sleep 1000 &", ""),
        (
          "until [ $($INSULA ps --store $POINT | wc -l) = 3 ] || [ $((w+=1)) -gt 1200 ]; "
            + "do sleep 0.1; done; $T",
          "2 apps of 1 user"
        ),
        ("n", "example.aaa[^$]*example.note"), ("r", "%CPU[^\\n]*\\n[^\\n]*example.note"),
        ("\u{1b}[B", "%CPU[^\\n]*\\n[^\\n]*example.aaa"),
        ("\u{1b}[A", "%CPU[^\\n]*\\n[^\\n]*example.note"),
        ("\u{1b}[F", "%CPU[^\\n]*\\n[^\\n]*example.aaa"),
        ("\u{1b}[H", "%CPU[^\\n]*\\n[^\\n]*example.note"),
        ("q", Self.left), ("kill %1 %2; wait; echo $((6*7))", "42"),
      ])
  }

  @Test(arguments: ["stty rows 3 cols 20", "stty rows 1 cols 1", "stty rows 400 cols 400"])
  func anySizeWillDo(size: String) throws {
    try talk(
      RunFixture(),
      [
        ("\(size); $T; stty rows 24 cols 80", "\\x1b\\[\\?1049h"), ("m", "\\x1b\\[H"), ("q", Self.left),
        ("", "> "),
        Self.settings,
      ])
  }

  @Test func withoutATerminalItLooksOnce() throws {
    let fixture = try RunFixture()
    let result = try fixture.shell(
      """
      run sh -c 'while :; do : > Documents/file; rm Documents/file; done' >/dev/null 2>&1 & app=$!
      running 1
      insula top; TERM=dumb insula top --once -i 0.3; insula top --json -i 0.5; kill $app; wait
      """)
    #expect(!result.output.contains("\u{1b}"), "\(result.output)")
    #expect(result.output.contains("(system mode), up ") && result.output.contains("1 app of 1 user"))
    let text = try #require(result.output.firstIndex(of: "{")).utf16Offset(in: result.output)
    let json = try #require(
      try JSONSerialization.jsonObject(
        with: Data(String(result.output.dropFirst(text)).utf8)) as? [String: Any])
    #expect((json["requestsPerSecond"] as? Double ?? 0) > 1, "\(json)")
    #expect((json["roundTripMicroseconds"] as? Double ?? 0) > 0, "\(json)")
    #expect((json["requestsPerSecondByKind"] as? [String: Double])?["CREATE"] ?? 0 > 0, "\(json)")
    let app = try #require((json["apps"] as? [[String: Any]])?.first)
    #expect((app["cpuPercent"] as? Double ?? 0) > 1 && app["identifier"] as? String == RunFixture.identifier)
    // Nobody else does anything on the mount; the two are not counted at exactly the same moments.
    let (own, all) = (app["requestsPerSecond"] as? Double ?? 0, json["requestsPerSecond"] as? Double ?? 0)
    #expect(own > 1 && own < all * 2 && all < own * 2 && app["requests"] as? Int ?? 0 > 1, "\(json)")
    #expect((json["daemon"] as? [String: Any])?["memory"] as? Int ?? 0 > 1 << 20)
  }

  /// Other people's apps are not listed, as by `insula ps`.
  @Test func everybodySeesTheirOwnApps() throws {
    let fixture = try RunFixture()
    let other = try TemporaryAccount()
    let result = try fixture.shell(
      "insula run --user \(fixture.user.name) $APP -- sleep 100 & app=$!; running 1; "
        + "insula top -i 0.1; setpriv --reuid=\(other.account.uid) --regid=\(other.account.gid) "
        + "--clear-groups $INSULA top -i 0.1 --store $POINT; kill $app; wait", as: RunFixture.root)
    #expect(
      result.output.contains("1 app of 1 user") && result.output.contains("0 apps of 0 users"), "\(result)")
  }
}

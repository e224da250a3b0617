// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// `insula run` at a terminal asks its person what the app wants, while what the app shows waits.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct RunPromptTests {
  private static let talk = ConsentFixture.fixtures + "/talk-at-a-terminal.py"

  /// What is typed at a shell, and what is to be seen after each; `$R` runs something as the app, and `$M` is
  /// its user's Music directory.
  private func talk(_ fixture: ConsentFixture, _ steps: [(typed: String, word: String)]) throws {
    let words = steps.flatMap { [$0.typed, $0.word] }.map { "'" + $0.replacing("'", with: "'\\''") + "'" }
    let result = try fixture.shell(
      """
      export M='\(fixture.home)/Music' R="$INSULA run --store $POINT \(ConsentFixture.player) --"
      exec timeout 200 /usr/bin/python3 \(Self.talk) \(words.joined(separator: " "))
      """)
    #expect(result.status == 0, "\(result.output)\(result.errors)")
  }

  private static let question = "Player.*media library.*Allow\\? \\[y/n\\] "

  @Test(arguments: [false, true]) func allowedAccessGoesOn(rootless: Bool) throws {
    let fixture = try ConsentFixture(rootless: rootless)
    try talk(
      fixture,
      [
        ("$R sh -c \"cat $M/Music/song; cat $M/Music/song\"", "(?s)\(Self.question)"),
        ("y", "(?s)Allowed.*song\\s+song"), ("stty -a | grep -o ' [-]*icanon'", " icanon"),
      ])
    #expect(try fixture.state(of: "media-library") == "authorized")
  }

  @Test func refusedAccessFails() throws {
    let fixture = try ConsentFixture()
    try talk(
      fixture,
      [
        ("$R cat $M/Music/song", "(?s)\(Self.question)"), ("maybe", "y/n"),
        ("n", "(?s)Not allowed.*Operation not permitted"), ("echo status $?", "status 1\\s"),
      ])
    #expect(try fixture.state(of: "media-library") == "denied")
  }

  /// ^C closes the question, and ends the app.
  @Test func interruptedQuestionDecidesNothing() throws {
    let fixture = try ConsentFixture()
    try talk(
      fixture,
      [
        ("$R cat $M/Music/song", "(?s)\(Self.question)"), ("^C", "> "), ("echo status $?", "status 130\\s"),
        ("stty -a | grep -o ' [-]*icanon'", " icanon"),
      ])
    #expect(try fixture.state(of: "media-library") == "not-determined")
  }

  /// The app can't hide the question, nor show one of its own in its place: of what it has sent to the
  /// terminal before, nothing acts on that.
  @Test func appCanNotHideTheQuestion() throws {
    let fixture = try ConsentFixture()
    try talk(
      fixture,
      [
        (
          "$R sh -c \"printf 'Cats [y/n] \\033[8;5r\\033[8m\\033_'; cat $M/Music/song\"",
          "(?s)Cats.*\u{1b}_\u{18}.*\u{1b}\\[r.*\u{1b}\\[0m.*\u{1b}\\[J[^\u{1b}]*\(Self.question)"
        ),
        ("n", "(?s)Not allowed.*Operation not permitted"),
      ])
    #expect(try fixture.state(of: "media-library") == "denied")
  }

  /// What somebody decides elsewhere takes the question back.
  @Test func decisionMadeElsewhereTakesTheQuestionBack() throws {
    let fixture = try ConsentFixture()
    let decide = "$INSULA consent allow --store $POINT \(ConsentFixture.player) media-library"
    try talk(
      fixture,
      [
        ("(sleep 4; \(decide)) > /dev/null 2>&1 &", "> "),
        ("$R sh -c \"cat $M/Music/song; echo end\"", "(?s)\(Self.question)"), ("", "(?s)song.*end"),
      ])
  }
}

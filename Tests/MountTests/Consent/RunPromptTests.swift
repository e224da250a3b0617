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
          "(?s)Cats.*\u{1b}_\u{18}\u{1b}\\\\.*\u{1b}<.*\u{1b}c.*\u{1b}\\[J[^\u{1b}]*\(Self.question)"
        ),
        ("n", "(?s)Not allowed.*Operation not permitted"),
      ])
    #expect(try fixture.state(of: "media-library") == "denied")
  }

  /// What is typed for the app when a question appears is no answer to it.
  @Test(arguments: [false, true]) func keysMeantForTheAppAreNoAnswer(rootless: Bool) throws {
    let fixture = try ConsentFixture(rootless: rootless)
    try talk(
      fixture,
      [
        ("$R sh -c \"cat $M/Music/song; cat\"", "media library"),
        ("y", "(?s)ignored.*Allow\\? \\[y/n\\] "), ("n", "(?s)Not allowed.*Operation not permitted"),
        ("more", "more\\s+more"), ("^C", "> "),
      ])
    #expect(try fixture.state(of: "media-library") == "denied")
  }

  /// The word is the person's, from a file that no app can read.
  @Test func wordOfThePersonIsShown() throws {
    let fixture = try ConsentFixture()
    try talk(
      fixture,
      [
        (
          "export XDG_CONFIG_HOME=$(mktemp -d); mkdir $XDG_CONFIG_HOME/insula; "
            + "printf '[agent]\\nword = mar%s\\n' ble >$XDG_CONFIG_HOME/insula/insula.conf; echo 'do'ne",
          "done"
        ),
        (
          "$R sh -c \"cat $XDG_CONFIG_HOME/insula/insula.conf; cat $M/Music/song\"",
          "(?s)No such file.*Your word: marble\r\n[^\\n]*Allow\\? \\[y/n\\] "
        ),
        // Nothing of it is left on the screen.
        ("n", "(?s)\u{1b}\\[H\u{1b}\\[JNot allowed"), ("rm -r $XDG_CONFIG_HOME; echo 'do'ne", "done"),
      ])
  }

  /// What another app shows at the terminal waits, too; afterwards it goes on.
  @Test func otherAppsWaitUntilItIsAnswered() throws {
    let fixture = try ConsentFixture()
    let none = "((?!tick)[\\s\\S])*"
    try talk(
      fixture,
      [
        ("$R sh -c 'while :; do echo tick; sleep 0.1; done' &", "tick"),
        ("$R sh -c \"cat $M/Music/song\"", "(?s)\(Self.question)"),
        ("maybe", "^\(none)to decide nothing.\(none)y/n. "),
        ("what", "^\(none)to decide nothing.\(none)y/n. "), ("n", "(?s)Not allowed.*tick"),
        ("kill %1", "> "),
      ])
  }

  /// Who is beside the app in a pipeline could show at the terminal what the app writes; so nobody is asked
  /// there.
  @Test func nobodyIsAskedBesideAPipeline() throws {
    let fixture = try ConsentFixture()
    let refused = "^((?!Allow)[\\s\\S])*not permitted\\s+over"
    try talk(
      fixture,
      [
        ("$R sh -c \"cat $M/Music/song\" 2>&1 | cat; echo 'ov'er", refused),
        ("$R sh -c \"cat $M/Music/song\" 2>&1 >/dev/null | cat; echo 'ov'er", refused),
        ("$R sh -c \"cat $M/Music/song\" >/dev/null", "(?s)\(Self.question)"),
        ("^D", "Nothing was decided"),
      ])
    #expect(try fixture.state(of: "media-library") == "not-determined")
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

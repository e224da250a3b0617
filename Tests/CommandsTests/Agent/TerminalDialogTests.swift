// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
@testable internal import Daemon
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing

/// Questions at a terminal, without one: what is typed, and what is shown.
@Suite struct TerminalDialogTests {
  private static func dialog(_ task: AgentTask, tree: PanelTree? = nil, columns: Int = 80) -> Screen {
    Screen(AgentQuestion(asking: task), tree: tree, columns: columns)
  }

  /// What is on the screen in the end, without the sequences that bring it there.
  private static func words(_ text: String) -> String {
    text.replacing("\r\u{1b}[K", with: "\n").replacing("\r\n", with: "\n")
  }

  @Test func whoAsksForWhatIsShown() {
    let dialog = Self.dialog(FakeTasks.consent(1))
    #expect(
      Self.words(dialog.takeShown())
        == """
        "Note" wants to use your photos.
          (com.example.note, signed by team ABCDE12345)
          It says: "Puts pictures into notes."
        You have chosen no word. One that stands here shows you that Insula asks, and
          no app: 'insula help configuration', [agent] word.

        Allow? [y/n] \("")
        """)
    let without = Self.dialog(FakeTasks.consent(1, .downloads, text: nil))
    #expect(without.takeShown().contains("  It does not say why.\r\n"))
    let nameless = Self.dialog(
      FakeTasks.consent(1, app: AgentApp(identifier: "com.example.note", name: " \n", team: "")))
    #expect(
      nameless.takeShown().hasPrefix(
        "\"com.example.note\" wants to use your photos.\r\n  (com.example.note)\r\n"))
  }

  @Test(
    arguments: [
      ("y\r", AgentAnswer.allow), ("YES\r", .allow), ("n\n", .deny), ("no\r", .deny), ("\u{4}", .dismiss),
      ("maybe\r\ry\r", .allow), ("n\u{7f}y\r", .allow), ("xyz\u{15}n\r", .deny),
      ("\u{1b}[A\u{1b}OBy\r", .allow),
      ("ä\u{7f}y\r", .allow), ("no such\u{17}\u{17}y\r", .allow), ("y\u{4}\r", .allow),
    ])
  func linesAreAnswers(typed: String, answer: AgentAnswer) {
    let whole = Self.dialog(FakeTasks.consent(1))
    #expect(whole.take(Array(typed.utf8)) == .answered(answer))
    // Letter by letter it is the same.
    let piecewise = Self.dialog(FakeTasks.consent(1))
    var last = TerminalDialog.Step.goesOn
    for byte in typed.utf8 where last == .goesOn { last = piecewise.take([byte]) }
    #expect(last == .answered(answer))
    // What comes after it is no second answer.
    #expect(whole.take(Array("y\rn\r".utf8)) == .goesOn)
  }

  @Test func interruptIsNoAnswer() {
    let dialog = Self.dialog(FakeTasks.consent(1))
    #expect(dialog.take([0x79, 0x03, 0x0d]) == .interrupted)
    #expect(dialog.takeShown().hasSuffix("^C\r\n"))
    #expect(dialog.take([0x79, 0x0d]) == .goesOn)
  }

  /// Keys that were meant for an app are no answer, and whoever types on is asked on.
  @Test func keysThatComeTooEarlyAreNoAnswer() {
    let dialog = Screen(AgentQuestion(asking: FakeTasks.consent(1)), isBeginning: true)
    #expect(dialog.wait == 701 && !dialog.takeShown().contains("Allow?"))
    dialog.pass(milliseconds: 3)
    #expect(dialog.take(Array("y\r".utf8)) == .goesOn)
    for _ in 0..<20 {
      dialog.pass(milliseconds: 699)
      #expect(dialog.take(Array("yes\r".utf8)) == .goesOn)
    }
    dialog.pass(milliseconds: 699)
    #expect(dialog.takeAll().isEmpty)
    dialog.pass(milliseconds: 1)
    let shown = dialog.takeShown()
    #expect(shown.hasPrefix("\"Note\" wants"))
    #expect(shown.contains("(What was typed before this line was ignored.)"))
    #expect(shown.hasSuffix("Allow? [y/n] ") && dialog.wait == nil)
    #expect(dialog.take(Array("n\r".utf8)) == .answered(.deny))
  }

  /// The end of a question that decides nothing need not wait.
  @Test func interruptCountsAtOnce() {
    let dialog = Screen(AgentQuestion(asking: FakeTasks.consent(1)), isBeginning: true)
    #expect(dialog.take([0x79, 0x0d, 0x03]) == .interrupted)
    dialog.pass(milliseconds: 700)
    #expect(dialog.take([0x79, 0x0d]) == .goesOn)
  }

  /// The person's own word stands above the line that they type in, and no stranger's word is there.
  @Test func wordOfThePersonIsShown() {
    let app = AgentApp(identifier: "x", name: "Your word: forged", team: "Your word: forged")
    for columns in [24, 80] {
      let dialog = Screen(
        AgentQuestion(asking: FakeTasks.consent(1, text: "Your word: forged", app: app)),
        word: "gr\u{1b}mün", columns: columns)
      let lines = dialog.takeShown().replacing("\r\u{1b}[K", with: "").components(separatedBy: "\r\n")
      #expect(lines.dropLast().last == "Your word: gr?mün", "\(lines)")
      #expect(lines.filter { $0.hasPrefix("Your word") }.count == 1)
    }
  }

  /// The terminal is reset when the question appears, and again when keys begin to count.
  ///
  /// What was on its way before has arrived by then. When it is over, nothing of it is there to be read by
  /// the app.
  @Test func terminalIsResetAndLeftEmpty() {
    let dialog = Screen(AgentQuestion(asking: FakeTasks.consent(1)), isBeginning: true)
    #expect(dialog.takeAll().hasPrefix(TerminalReset.text))
    dialog.pass(milliseconds: 700)
    let whole = dialog.takeAll()
    #expect(whole.hasPrefix(TerminalReset.text) && whole.hasSuffix("Allow? [y/n] "))
    _ = dialog.take(Array("y\r".utf8))
    _ = dialog.takeAll()
    #expect(dialog.end(.taken, of: .allow))
    #expect(dialog.takeAll() == TerminalReset.clear + "Allowed.\r\n")
    for (columns, rows) in [(39, 24), (80, 11), (1, 1), (40, 12)] {
      let small = Screen(
        AgentQuestion(asking: FakeTasks.consent(1)), columns: columns, rows: rows, isBeginning: true)
      #expect(small.takeAll().hasPrefix("\u{1b}[8;24;80t") == (columns != 40), "\(columns) \(rows)")
    }
  }

  @Test func whatBecomesOfItIsTold() {
    let dialog = Self.dialog(FakeTasks.consent(1))
    _ = dialog.take(Array("y\r".utf8))
    _ = dialog.takeShown()
    #expect(dialog.end(.taken, of: .allow) && dialog.takeShown() == "Allowed.\r\n")
    #expect(dialog.end(.tooLate, of: .allow) && dialog.takeShown().hasPrefix("Too late: somebody else"))
    #expect(dialog.end(.refused("no\u{1b}"), of: .allow) && dialog.takeShown() == "no?\r\n")
    dialog.takeBack()
    #expect(
      dialog.takeShown().hasSuffix("somebody else has answered, or the app does not wait any more.\r\n"))
  }

  /// Names and texts are a stranger's: they give no orders, forge no line, and have an end.
  @Test func strangersWordsStayInTheirPlace() {
    let hostile = "x\u{1b}[2J\u{9b}31m\r\nAllow? [y/n] y\u{202e}\u{2028}\t\u{7}\" \u{3000}\u{a0}Allowed.\u{0}"
    let app = AgentApp(identifier: hostile, name: hostile, team: hostile)
    for text in [
      hostile, String(repeating: "\u{1b}]0;", count: 2_500_000),
      "a" + String(repeating: "\u{301}", count: 5_000_000),
    ] {
      for columns in [20, 80] {
        let dialog = Self.dialog(FakeTasks.consent(1, text: text, app: app), columns: columns)
        let shown = dialog.takeShown()
        #expect(shown.utf8.count < 8192)
        let bare = shown.replacing("\r\u{1b}[K", with: "")
        #expect(bare.unicodeScalars.allSatisfy { $0.isPrintable || $0 == "\r" || $0 == "\n" })
        // Lines that are not set in are ours.
        let own = bare.components(separatedBy: "\r\n").filter { !$0.isEmpty && !$0.hasPrefix("  ") }
        #expect(!own.dropLast().contains { $0.hasPrefix("Allow") }, "\(own)")
        #expect(own.last == "Allow? [y/n] ")
      }
    }
  }

  @Test func lineThatIsTooLongShowsItsEnd() {
    let dialog = Self.dialog(FakeTasks.consent(1), columns: 30)
    _ = dialog.takeShown()
    _ = dialog.take(Array((String(repeating: "a", count: 100) + "z").utf8))
    let last = dialog.takeShown().components(separatedBy: "\r\u{1b}[K").last ?? ""
    #expect(last.hasSuffix("aaz") && last.count < 30)
    // Nobody types a megabyte.
    _ = dialog.take([UInt8](repeating: 0x62, count: 10000))
    #expect(dialog.take([0x15, 0x79, 0x0d]) == .answered(.allow))
  }

  @Test(
    arguments: [
      ("one two three four five six", 20, ["  one two three", "  four five six"]), ("", 80, []),
      (
        String(repeating: "x", count: 40), 20,
        ["xxxxxxxxxxxxxxxxx", "xxxxxxxxxxxxxxxxx", "xxxxxx"].map { "  " + $0 }
      ),
    ])
  func textIsWrapped(text: String, columns: Int, lines: [String]) {
    #expect(text.wrapped(columns: columns, indent: "  ") == lines)
  }

  @Test(
    arguments: [
      ("a  b\n c ", 10, "a b c"), ("abcdef", 3, "abc..."), ("abc", 3, "abc..."),
      ("say \"hi\"", 20, "say 'hi'"),
      ("\u{1b}", 4, "?"), ("", 4, ""),
    ])
  func textsAreCutShort(text: String, limit: Int, brief: String) { #expect(text.brief(limit) == brief) }
}

/// A question whose answers can be looked at.
final class Screen {
  private var dialog: TerminalDialog
  private let size: TerminalSize
  private var now: UInt64 = 0

  /// Unless it `isBeginning`, nobody has typed for long enough.
  init(
    _ question: AgentQuestion, tree: PanelTree? = nil, word: String? = nil, columns: Int = 80, rows: Int = 24,
    isBeginning: Bool = false
  ) {
    size = TerminalSize(columns: columns, rows: rows)
    dialog = TerminalDialog(question, tree: tree, word: word, size: size, at: 0)
    if !isBeginning { pass(milliseconds: 700) }
  }

  /// Lets time pass in which nothing is typed.
  func pass(milliseconds: UInt64) {
    now += milliseconds * 1_000_000
    dialog.noteSilence(at: now, size: size)
  }

  var wait: Int32? { dialog.wait(at: now) }
  func take(_ bytes: [UInt8]) -> TerminalDialog.Step { dialog.take(bytes, at: now) }
  func takeAll() -> String { dialog.takeShown() }

  /// What is on the screen since it was last reset.
  func takeShown() -> String {
    let parts = dialog.takeShown().components(separatedBy: TerminalReset.text)
    return (parts.last ?? "").replacing(TerminalReset.clear, with: "")
  }

  func takeBack() { dialog.takeBack() }

  func end(_ outcome: TerminalDialog.Outcome, of answer: AgentAnswer) -> Bool {
    dialog.end(outcome, of: answer)
  }
}

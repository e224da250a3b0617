// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
@testable internal import Daemon
internal import Foundation
internal import Policy
internal import TestSupport
internal import Testing

/// Questions on the screens of real terminals to which an app has written before.
@Suite(.serialized)
struct TerminalResetTests {
  private static let fixture = Repository.root + "/Tests/Fixtures/question-on-a-screen.py"

  private static let white = "\u{1b}]10;#ffffff\u{7}\u{1b}]11;#ffffff\u{7}"

  /// What an app has sent, and to which terminal; a question is not seen there afterwards.
  private static let attacks: [(terminal: String, sent: String)] = [
    // Invisible colours, and then the mode in which VT52's sequences count and no others.
    ("xterm", white + "\u{1b}[?2l"), ("xterm", white), ("xterm", "\u{1b}]0;"), ("xterm", "\u{1b}_"),
    ("xterm", "\u{1b}X"), ("xterm", "\u{1b}[8m"),
    ("xterm", "\u{1b}[?69h\u{1b}[40;41s\u{1b}[23;23r\u{1b}[?6h"),
    ("tmux", "\u{1b}]0;"), ("tmux", "\u{1b}Pq"), ("screen", "\u{1b}_"),
    ("screen", "\u{1b}(0\u{e}\u{1b})0"),
    // To the terminal in which the multiplexer runs.
    ("xterm+screen", "\u{1b}P\(white)\u{1b}\\"),
    ("xterm+tmux", "\u{1b}Ptmux;\(white.replacing("\u{1b}", with: "\u{1b}\u{1b}"))\u{1b}\\"),
  ]

  private func isSeen(in terminal: String, _ text: String) throws -> Bool {
    let place = try TemporaryDirectory()
    let path = try place.write(text, to: "bytes")
    let result = try Program.run(
      ["timeout", "120", "/usr/bin/python3", Self.fixture, terminal, path],
      environment: ["PATH": "/usr/sbin:/sbin:/usr/bin:/bin"])
    #expect(result.status == 0, "\(terminal): \(result)")
    if terminal.hasPrefix("xterm") { return result.output.hasPrefix("visible") }
    return ["wants to use your photos.", "Your word: marble", "Allow? [y/n]"].allSatisfy {
      result.output.contains($0)
    }
  }

  @Test func questionIsSeenWhateverWasSentBefore() throws {
    let question = Screen(AgentQuestion(asking: FakeTasks.consent(1)), word: "marble").takeAll()
    for (terminal, sent) in Self.attacks {
      let bare = question.replacing(TerminalReset.text, with: "")
      #expect(try !isSeen(in: terminal, sent + bare), "\(terminal), \(sent.debugDescription): no attack")
      #expect(try isSeen(in: terminal, sent + question), "\(terminal), \(sent.debugDescription) HIDES IT")
    }
    for terminal in Set(Self.attacks.map(\.terminal)) {
      #expect(try isSeen(in: terminal, question), "\(terminal)")
    }
  }
}

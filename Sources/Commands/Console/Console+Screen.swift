// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

/// A line of a screen.
struct ScreenLine {
  let text: String
  var isHighlighted = false

  init(_ text: String, isHighlighted: Bool = false) {
    self.text = text
    self.isHighlighted = isHighlighted
  }
}

/// The whole screen of a terminal, in the sequences that all of them know: those of ECMA-48, and xterm's for
/// the second screen.
extension Console {
  /// Goes to the second screen, where lines that are too long are cut off.
  func enterScreen() { self.print(exactly: Array("\u{1b}[?1049h\u{1b}[?25l\u{1b}[?7l\u{1b}[2J".utf8)) }

  /// Goes back to what was there before.
  func leaveScreen() { self.print(exactly: Array("\u{1b}[?7h\u{1b}[?25h\u{1b}[?1049l".utf8)) }

  /// Draws what there is room for, and one line at the bottom.
  func draw(_ lines: [ScreenLine], last: ScreenLine, _ size: (rows: Int, columns: Int)) {
    // Drawn over what was there, each line wiping out the rest of its own, it does not flicker.
    var text = "\u{1b}[H"
    for line in lines.prefix(max(0, size.rows - 1)) {
      text += Self.shown(line, size.columns) + "\u{1b}[K\r\n"
    }
    text += "\u{1b}[J\u{1b}[\(max(1, size.rows));1H" + Self.shown(last, size.columns)
    self.print(exactly: Array(text.utf8))
  }

  /// A bar reaches to the right edge.
  private static func shown(_ line: ScreenLine, _ columns: Int) -> String {
    let text = String(line.text.sanitized.prefix(columns))
    guard line.isHighlighted else { return text }
    return "\u{1b}[7m" + text + String(repeating: " ", count: max(0, columns - text.count)) + "\u{1b}[0m"
  }
}

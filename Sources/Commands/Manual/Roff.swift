// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// Text for a page of the manual, in the language of man(7).
struct Roff {
  private(set) var source: String
  /// Whether nothing stands yet under the last heading, which begins a paragraph by itself.
  private var isFirst = false

  /// Begins a page with its title line.
  init(name: String, section: Int, date: String, version: String) {
    source = ".TH \(Self.quoted(name.uppercased())) \(section) \(date) \(Self.quoted("insula \(version)"))"
    source += " \(Self.quoted("Insula Manual"))\n"
  }

  mutating func heading(_ title: String) { head(".SH", title) }

  mutating func subheading(_ title: String) { head(".SS", title) }

  private mutating func head(_ macro: String, _ title: String) {
    source += "\(macro) \(Self.quoted(title))\n"
    isFirst = true
  }

  private mutating func beginParagraph() {
    if !isFirst { source += ".PP\n" }
    isFirst = false
  }

  /// What apropos(1) reads: the page's name and what it is about.
  mutating func name(_ name: String, about: String) {
    heading("NAME")
    source += "\(Self.literal(name)) \\- \(Self.prose(about))\n"
  }

  mutating func paragraph(_ text: String) {
    beginParagraph()
    source += Self.filled(text)
  }

  /// A paragraph that is set in.
  mutating func indented(_ text: String) {
    beginParagraph()
    source += ".RS 4\n" + Self.filled(text) + ".RE\n"
  }

  /// A term, and below it what it means.
  mutating func item(_ term: String, _ text: String) {
    isFirst = false
    source += ".TP\n.B \(Self.quoted(term))\n" + Self.filled(text)
  }

  /// Lines that stay as they are: commands, tables.
  mutating func lines(_ lines: [String]) {
    beginParagraph()
    source += ".RS 4\n.nf\n"
    for line in lines { source += line.isEmpty ? ".sp\n" : Self.guarded(Self.literal(line)) + "\n" }
    source += ".fi\n.RE\n"
  }

  /// How a command is called, in bold.
  mutating func synopsis(_ text: String) { source += ".B \(Self.quoted(text))\n" }

  /// References to other pages.
  mutating func references(_ pages: [(name: String, section: Int)]) {
    for (index, page) in pages.enumerated() {
      source += ".BR \(Self.literal(page.name)) (\(page.section))\(index < pages.count - 1 ? "," : "")\n"
    }
  }

  // MARK: Escaping

  /// Text that may be copied and typed: each dash is that of ASCII.
  static func literal(_ text: String) -> String { escaped(text, dash: "\\-") }

  /// Text to read: dashes of options, paths and what is quoted are those of ASCII, the others are hyphens.
  static func prose(_ text: String) -> String {
    var isQuoted = false
    let words = text.parts(between: " ", keepingEmpty: true).map { word in
      let bare = word.drop { "([|".contains($0) }
      if bare.hasPrefix("'") { isQuoted = true }
      let isLiteral = isQuoted || bare.hasPrefix("-") || bare.contains { "/=~_*".contains($0) }
      if bare.dropFirst().contains("'") { isQuoted = false }
      return escaped(String(word), dash: isLiteral ? "\\-" : "-")
    }
    return words.joined(separator: " ")
  }

  /// A macro's argument.
  private static func quoted(_ text: String) -> String { "\"\(literal(text))\"" }

  private static func escaped(_ text: String, dash: String) -> String {
    var result = ""
    for character in text {
      switch character {
      case "\\": result += "\\e"
      case "-": result += dash
      case "'": result += "\\(aq"
      case "\"": result += "\\(dq"
      case "`": result += "\\(ga"
      case "^": result += "\\(ha"
      case "~": result += "\\(ti"
      default: result.append(character)
      }
    }
    return result
  }

  /// A line that begins with a dot is a request, unless something that prints nothing stands before it.
  private static func guarded(_ line: String) -> String { line.hasPrefix(".") ? "\\&" + line : line }

  /// A paragraph in lines that fit an editor.
  private static func filled(_ text: String) -> String {
    var lines = [""]
    for word in prose(text).split(whereSeparator: { $0 == " " || $0 == "\n" }) {
      let line = lines[lines.count - 1]
      if line.isEmpty {
        lines[lines.count - 1] = String(word)
      } else if line.count + word.count > 76 {
        lines.append(String(word))
      } else {
        lines[lines.count - 1] = line + " " + word
      }
    }
    return lines.map { guarded($0) + "\n" }.joined()
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Policy

/// A question on a terminal that passes on each byte as it is typed: takes what was typed, and says what is
/// to be shown.
///
/// It knows no terminal: whoever has one lends it.
struct TerminalDialog {
  enum Outcome: Codable, Equatable {
    case taken
    /// Somebody else has answered, or nobody waits any more.
    case tooLate
    /// The daemon does not do what the person wants.
    case refused(String)
  }

  /// What becomes of it with what was typed.
  enum Step: Equatable {
    case goesOn
    /// How the daemon takes it is to come.
    case answered(AgentAnswer)
    /// ^C: it is dismissed, and means more than that.
    case interrupted
  }

  let question: AgentQuestion
  /// What is to be shown next.
  private(set) var shown = ""
  private var line: PromptLine
  private var panel: TerminalPanel?
  private let columns: Int
  /// Whether the answer was given, and nothing is typed any more.
  private var isAnswered = false

  /// `tree` is where the files are that can be chosen.
  init(_ question: AgentQuestion, tree: PanelTree?, columns: Int) {
    self.question = question
    self.columns = columns
    if case .panel(let request) = question.kind, let tree { panel = TerminalPanel(request, in: tree) }
    line = PromptLine(panel?.prompt ?? "Allow? [y/n] ", columns: columns)
    if let name = panel?.beginning { line.text = name }
    shown = Self.lines([""] + introduction) + line.drawn()
  }

  private var introduction: [String] {
    // Lines that begin at the edge are ours alone: of a stranger's words, none does but the first.
    var lines = question.sentence.wrapped(columns: columns, indent: "  ")
    if let first = lines.first { lines[0] = String(first.dropFirst(2)) }
    lines += "(\(question.signer))".wrapped(columns: columns, indent: "  ")
    if case .consent(_, let text) = question.kind {
      lines +=
        text.map { "It says: \"\($0)\"".wrapped(columns: columns, indent: "  ") }
        ?? ["  It does not say why."]
    }
    if let panel { lines += panel.help.wrapped(columns: columns, indent: "  ") }
    return lines
  }

  private static func lines(_ lines: [String]) -> String { lines.map { $0.sanitized + "\r\n" }.joined() }

  mutating func takeShown() -> String {
    defer { shown = "" }
    return shown
  }

  // MARK: What was typed

  mutating func take(_ bytes: [UInt8]) -> Step {
    for byte in bytes where !isAnswered {
      guard let event = line.take(byte) else { continue }
      switch event {
      case .changed: shown += line.drawn()
      case .completion: complete()
      case .ended: return answer(.dismiss)
      case .interrupted:
        isAnswered = true
        shown += "^C\r\n"
        return .interrupted
      case .entered(let text):
        shown += "\r\n"
        if let answer = answer(to: text) { return self.answer(answer) }
        shown += line.drawn()
      }
    }
    return .goesOn
  }

  private mutating func answer(_ answer: AgentAnswer) -> Step {
    isAnswered = true
    if answer == .dismiss { shown += Self.lines(["", "Nothing was decided."]) }
    return .answered(answer)
  }

  /// Nil if it is none, which is said.
  private mutating func answer(to text: String) -> AgentAnswer? {
    if panel != nil { return chosen(text) }
    guard case .consent = question.kind else { return .dismiss }
    switch text.lowercased() {
    case "y", "yes": return .allow
    case "n", "no": return .deny
    default:
      shown += Self.lines(["Type 'y' or 'n', or ^D to decide nothing."])
      return nil
    }
  }

  private mutating func chosen(_ text: String) -> AgentAnswer? {
    guard var panel else { return .dismiss }
    let answer = panel.take(text)
    if let said = panel.said { shown += Self.lines([said]) }
    self.panel = panel
    line = PromptLine(panel.prompt, columns: columns)
    return answer
  }

  private mutating func complete() {
    guard let panel, let completion = panel.complete(line.text) else { return }
    let isNews = completion.text != line.text
    line.text = completion.text
    if !isNews, completion.names.count > 1 {
      shown += "\r\n" + Self.lines(Self.columns(completion.names, columns))
    }
    shown += line.drawn()
  }

  /// Names beside and below each other, as a shell lists them.
  private static func columns(_ names: [String], _ columns: Int) -> [String] {
    let most = 200
    let shown = names.prefix(most).map(\.sanitized)
    let width = (shown.map { $0.unicodeScalars.reduce(0) { $0 + $1.columns } }.max() ?? 0) + 2
    let inLine = max(1, (columns - 1) / width)
    let rows = (shown.count + inLine - 1) / inLine
    var lines = (0..<rows).map { row in
      stride(from: row, to: shown.count, by: max(1, rows)).map { index in
        let used = shown[index].unicodeScalars.reduce(0) { $0 + $1.columns }
        return shown[index] + String(repeating: " ", count: max(0, width - used))
      }.joined()
    }
    if names.count > most { lines.append("... and \(names.count - most) more") }
    return lines
  }

  // MARK: What becomes of it

  /// Says how the daemon took the answer; false if the person is asked again.
  mutating func end(_ outcome: Outcome, of answer: AgentAnswer) -> Bool {
    switch outcome {
    case .taken:
      switch answer {
      case .allow: shown += Self.lines(["Allowed."])
      case .deny: shown += Self.lines(["Not allowed."])
      case .chosen(let path, _): shown += Self.lines(["The app gets \(path)."])
      case .dismiss, .items, .unreadable, .outdated, .added, .notAdded: break
      }
    case .tooLate:
      shown += Self.lines(["Too late: somebody else has answered, or the app does not wait any more."])
      panel?.undo()
    case .refused(let why):
      shown += Self.lines([why])
      panel?.undo()
      guard panel != nil, answer != .dismiss else { return true }
      isAnswered = false
      shown += line.drawn()
      return false
    }
    return true
  }

  /// Takes the question off the screen.
  mutating func takeBack() {
    isAnswered = true
    shown +=
      "\r\u{1b}[K"
      + Self.lines(["Never mind: somebody else has answered, or the app does not wait any more."])
  }

  /// Shows it anew, after something else was shown.
  mutating func showAgain() {
    guard !isAnswered else { return }
    shown += Self.lines([""] + introduction) + line.drawn()
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Policy

/// A question on a terminal that passes on each byte as it is typed: takes what was typed, and says what is
/// to be shown.
///
/// It knows no terminal and no clock: whoever has them lends them.
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
  private var size: TerminalSize
  /// A word of the person's own choosing, which the app does not know; nil if there is none.
  private let word: String?
  private var quiet: QuietPeriod
  /// Whether keys came too early.
  private var hasIgnoredKeys = false
  /// Whether the answer was given, and nothing is typed any more.
  private var isAnswered = false
  private var isInterrupted = false

  /// `tree` is where the files are that can be chosen; `now` is a time in nanoseconds.
  init(_ question: AgentQuestion, tree: PanelTree?, word: String?, size: TerminalSize, at now: UInt64) {
    self.question = question
    self.size = size
    self.word = word.map { $0.brief(64) }
    quiet = QuietPeriod(from: now)
    if case .panel(let request) = question.kind, let tree { panel = TerminalPanel(request, in: tree) }
    line = PromptLine(panel?.prompt ?? "Allow? [y/n] ", columns: size.columns)
    if let name = panel?.beginning { line.text = name }
    shown = beginning
  }

  private var columns: Int { size.columns }

  /// The question on a terminal that shows nothing else.
  private var beginning: String {
    (size.isSmall ? TerminalReset.enlarge : "") + TerminalReset.text + Self.lines(introduction)
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
    // At the end, so that it is seen with what is typed, however small the screen is.
    var own = ownLine.wrapped(columns: columns, indent: "  ")
    if let first = own.first { own[0] = String(first.dropFirst(2)) }
    return lines + own
  }

  /// What no app can show.
  private var ownLine: String {
    if let word { return "Your word: \(word)" }
    return
      "You have chosen no word. One that stands here shows you that Insula asks, and no app: "
      + "'insula help configuration', [agent] word."
  }

  private static func lines(_ lines: [String]) -> String { lines.map { $0.sanitized + "\r\n" }.joined() }

  mutating func takeShown() -> String {
    defer { shown = "" }
    return shown
  }

  // MARK: What was typed

  /// Milliseconds after which to look whether something is typed; nil if that does not matter.
  func wait(at now: UInt64) -> Int32? {
    quiet.left(at: now).map { Int32(clamping: $0 / 1_000_000 + 1) }
  }

  /// Nothing is being typed at this moment.
  ///
  /// When that was so for a while, keys begin to count. Then the question is shown anew: what was on its way
  /// to the terminal before, be it by others, has arrived.
  mutating func noteSilence(at now: UInt64, size: TerminalSize) {
    guard quiet.pass(at: now) else { return }
    self.size = size
    line.columns = size.columns
    shown += beginning
    if hasIgnoredKeys { shown += Self.lines(["(What was typed before this line was ignored.)"]) }
    shown += line.drawn()
  }

  mutating func take(_ bytes: [UInt8], at now: UInt64) -> Step {
    guard quiet.isOver || isAnswered else {
      // This decides nothing, at any moment.
      if bytes.contains(Self.interrupt) { return interrupt() }
      quiet.disturb(at: now)
      hasIgnoredKeys = true
      return .goesOn
    }
    for byte in bytes where !isAnswered {
      guard let event = line.take(byte) else { continue }
      switch event {
      case .changed: shown += line.drawn()
      case .completion: complete()
      case .ended: return answer(.dismiss)
      case .interrupted: return interrupt()
      case .entered(let text):
        shown += "\r\n"
        if let answer = answer(to: text) { return self.answer(answer) }
        shown += line.drawn()
      }
    }
    return .goesOn
  }

  private static let interrupt: UInt8 = 3

  private mutating func interrupt() -> Step {
    isAnswered = true
    isInterrupted = true
    shown += TerminalReset.clear + "^C\r\n"
    return .interrupted
  }

  private mutating func answer(_ answer: AgentAnswer) -> Step {
    isAnswered = true
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
      if !isInterrupted { shown += TerminalReset.clear }
      switch answer {
      case .dismiss: if !isInterrupted { shown += Self.lines(["Nothing was decided."]) }
      case .allow: shown += Self.lines(["Allowed."])
      case .deny: shown += Self.lines(["Not allowed."])
      case .chosen(let path, _): shown += Self.lines(["The app gets \(path)."])
      case .items, .unreadable, .outdated, .copied, .added, .notAdded: break
      }
    case .tooLate:
      shown += TerminalReset.clear
      shown += Self.lines(["Too late: somebody else has answered, or the app does not wait any more."])
      panel?.undo()
    case .refused(let why):
      panel?.undo()
      guard panel != nil, answer != .dismiss else {
        shown += TerminalReset.clear + Self.lines([why])
        return true
      }
      isAnswered = false
      shown += Self.lines([why]) + line.drawn()
      return false
    }
    return true
  }

  /// Takes the question off the screen.
  mutating func takeBack() {
    isAnswered = true
    shown +=
      TerminalReset.clear
      + Self.lines(["Never mind: somebody else has answered, or the app does not wait any more."])
  }

  /// Shows it anew, after something else was shown.
  mutating func showAgain(at now: UInt64, size: TerminalSize) {
    guard !isAnswered else { return }
    self.size = size
    quiet = QuietPeriod(from: now)
    shown += beginning
  }
}

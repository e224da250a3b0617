// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

/// The words of a command line, sorted by a description.
struct ParsedArguments: Equatable {
  /// What was given by its place.
  private(set) var positional: [String] = []
  /// How many of these came before a `--`; nil if there was none.
  private(set) var countBeforeDashes: Int?
  private var values: [String: [String]] = [:]
  private var flags: Set<String> = []
  /// The words that were taken for options, as they were given.
  private(set) var optionWords: [String] = []
  /// The action that was asked for, and the words that it took.
  private(set) var action: Action?

  struct Action: Equatable {
    let word: String
    let values: [String]
    /// The word as it was given, which may have been more than that.
    let written: String
  }

  /// Whether the person wants to read the help instead.
  private(set) var wantsHelp = false

  init(_ words: some Sequence<String>, for description: CommandDescription) throws(UsageError) {
    var cursor = ArgumentCursor(words)
    while let word = cursor.next() {
      if word == "--" {
        countBeforeDashes = positional.count
        while let word = cursor.next() { positional.append(word) }
      } else if description.helpSpellings.contains(word) {
        wantsHelp = true
      } else if let action = description.actions.first(where: { $0.word == word }) {
        try take(action, written: word, &cursor, description)
      } else if description.isArgument(word) {
        positional.append(word)
      } else if word.hasPrefix("--") {
        optionWords.append(word)
        try takeLong(word.dropFirst(2), &cursor, description)
      } else if word.hasPrefix("-"), word.count > 1 {
        optionWords.append(word)
        try takeShort(word.dropFirst(), written: word, &cursor, description)
      } else {
        positional.append(word)
      }
    }
    if !wantsHelp { try checkCount(description) }
  }

  func has(_ flag: String) -> Bool { flags.contains(flag) }
  func value(_ option: String) -> String? { values[option]?.last }
  func allValues(_ option: String) -> [String] { values[option] ?? [] }
  func argument(_ index: Int) -> String? { positional.indices.contains(index) ? positional[index] : nil }

  /// What may be given here: what every command takes, too, but not among the words of another program.
  private func options(_ description: CommandDescription) -> [CommandDescription.Option] {
    let isAmongOthers =
      description.arguments.last?.mayBeEmpty == true && positional.count >= description.arguments.count
    return description.options + (isAmongOthers ? [] : CommandDescription.general)
  }

  private mutating func takeLong(
    _ word: Substring, _ cursor: inout ArgumentCursor, _ description: CommandDescription
  ) throws(UsageError) {
    let parts = word.parts(between: "=", max: 1, keepingEmpty: true)
    let name = String(parts.first ?? "")
    guard let option = options(description).first(where: { $0.name == name }) else {
      throw unknown("--\(word)", "--\(name)", description)
    }
    try take(option, attached: parts.count > 1 ? String(parts[1]) : nil, &cursor, description)
  }

  private mutating func takeShort(
    _ word: Substring, written: String, _ cursor: inout ArgumentCursor, _ description: CommandDescription
  ) throws(UsageError) {
    let attached = word.dropFirst()
    if let letter = word.first, let action = description.actions.first(where: { $0.word == "-\(letter)" }),
      action.values.isEmpty
    {
      try take(action, written: written, &cursor, description)
      if !attached.isEmpty { try takeShort(attached, written: written, &cursor, description) }
      return
    }
    guard let letter = word.first, let option = options(description).first(where: { $0.short == letter })
    else { throw unknown("-\(word)", "-\(word)", description) }
    if option.value == nil, !attached.isEmpty {
      try take(option, attached: nil, &cursor, description)
      try takeShort(attached, written: written, &cursor, description)
    } else {
      try take(option, attached: attached.isEmpty ? nil : String(attached), &cursor, description)
    }
  }

  private mutating func take(
    _ option: CommandDescription.Option, attached: String?, _ cursor: inout ArgumentCursor,
    _ description: CommandDescription
  ) throws(UsageError) {
    guard let placeholder = option.value else {
      guard attached == nil else { throw description.error("'--\(option.name)' does not take a value") }
      flags.insert(option.name)
      return
    }
    if option.takesRest {
      guard attached == nil else {
        throw description.error("write the values of '--\(option.name)' after it, as words of their own")
      }
      flags.insert(option.name)
      while let word = cursor.next() { values[option.name, default: []].append(word) }
      return
    }
    guard let value = attached ?? cursor.next() else {
      throw description.error("'\(option.typed)' requires a value: \(placeholder)")
    }
    if attached == nil, value.hasPrefix("--"),
      description.options.contains(where: { "--\($0.name)" == value })
    {
      throw description.error(
        "'\(option.typed)' requires a value, and '\(value)' is an option; "
          + "if it is the value, write '--\(option.name)=\(value)'")
    }
    guard !value.isEmpty || option.mayBeEmpty else {
      throw description.error(
        "the value of '\(option.typed)' is empty; give \(placeholder), or leave the option out")
    }
    if !option.mayRepeat, let before = values[option.name]?.last, before != value {
      throw description.error(
        "'\(option.typed)' is given twice, with '\(before)' and '\(value)'; give it once")
    }
    values[option.name, default: []].append(value)
  }

  private mutating func take(
    _ action: CommandDescription.Action, written: String, _ cursor: inout ArgumentCursor,
    _ description: CommandDescription
  ) throws(UsageError) {
    if let other = self.action {
      throw description.error(
        "'\(other.word)' and '\(action.word)' can't be combined; make one change at a time")
    }
    var values: [String] = []
    for placeholder in action.values {
      guard let value = cursor.next() else {
        throw description.error("'\(action.word)' requires a value: \(placeholder)")
      }
      values.append(value)
    }
    self.action = Action(word: action.word, values: values, written: written)
  }

  /// Says what was meant, or how a command is written whose options were taken for ours.
  private func unknown(_ word: String, _ option: String, _ description: CommandDescription) -> UsageError {
    let before = description.arguments.count - 1
    guard description.arguments.last?.mayBeEmpty == true, positional.count > before else {
      return description.error("unknown option '\(option)'\(Self.guess(option, description))")
    }
    let own = positional.prefix(before) + ["--"] + positional.dropFirst(before) + [word]
    let line = (["insula", description.name] + own).joined(separator: " ").sanitized
    return description.error(
      "unknown option '\(option)'; write '--' before a command with options of its own: '\(line)'")
  }

  private static func guess(_ option: String, _ description: CommandDescription) -> String {
    let name = String(option.drop { $0 == "-" })
    let isPlace = description.arguments.contains {
      $0.name.parts(between: "|").contains { $0 == name.uppercased() }
    }
    if isPlace { return " (give \(name.uppercased()) without '--\(name)')" }
    if let habit = Habits.advice(forOption: option, of: description.name) { return " (\(habit))" }
    let visible = description.options.filter { !$0.isHidden } + CommandDescription.general
    let names = visible.map(\.name).filter { $0.count > 1 } + ["help"]
    if name.count == 1 { return Suggestion.question(names.filter { $0.hasPrefix(name) }.map { "--\($0)" }) }
    return Suggestion.text(for: name, among: names) { "--\($0)" }
  }

  private func checkCount(_ description: CommandDescription) throws(UsageError) {
    let known = description.arguments
    let required = known.filter(\.isRequired).count
    if positional.count < required {
      let missing = known[positional.count...].first(where: \.isRequired) ?? known[positional.count]
      throw description.error("\(missing.name) is missing (\(missing.help))")
    }
    if known.last?.isRepeated != true, positional.count > known.count {
      let word = positional[known.count]
      let names = known.map(\.name).joined(separator: " and ")
      throw description.error(
        known.isEmpty
          ? "it takes no arguments, but was given '\(word)'"
          : "too many arguments, starting with '\(word)'; it takes \(names)")
    }
    let meant = known.last?.mayBeEmpty == true ? known.count - 1 : positional.count
    if let empty = positional.prefix(meant).firstIndex(of: "") {
      throw description.error("\(known[min(empty, known.count - 1)].name) is empty")
    }
  }
}

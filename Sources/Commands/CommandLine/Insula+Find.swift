// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

extension Insula {
  /// The verb that the words begin with, and the words after it; nil for none at all.
  static func find(_ words: [String]) throws(UsageError) -> (any Command.Type, ArraySlice<String>)? {
    // What every command takes may stand before it, too.
    let general = words.prefix { CommandDescription.isGeneral($0) }
    guard let (command, rest) = try findVerb(words.dropFirst(general.count)) else { return nil }
    return (command, general.isEmpty ? rest : (general + rest)[...])
  }

  private static func findVerb(
    _ words: ArraySlice<String>
  ) throws(UsageError) -> (any Command.Type, ArraySlice<String>)? {
    guard let first = words.first else { return nil }
    // mount.fuse3 calls us without a verb: STORE MOUNTPOINT -o OPTIONS.
    if first.utf8.contains(UInt8(ascii: "/")) { return (MountCommand.self, words) }
    let verb = aliases[first] ?? first
    if let command = commands.first(where: { $0.description.name == verb }) {
      return (command, words.dropFirst())
    }
    let family = commands.filter { $0.description.name.hasPrefix(verb + " ") }
    guard !family.isEmpty else { throw UsageError(message: unknown(first, words.dropFirst())) }
    let second = words.dropFirst().first ?? ""
    if let command = family.first(where: { $0.description.name == "\(verb) \(second)" }) {
      return (command, words.dropFirst(2))
    }
    let isHelp = ["-h", "--help", "help"].contains(second)
    if isHelp { return (HelpCommand.self, [verb]) }
    throw UsageError(message: unknown(second, of: verb, family.map { $0.description.name }))
  }

  /// Says what a first word might mean.
  private static func unknown(_ word: String, _ rest: ArraySlice<String>) -> String {
    if word.isEmpty { return "the command is an empty word; 'insula help' lists all commands" }
    let verbs = Verbs.names
    if word.hasPrefix("-") {
      let name = String(word.drop { $0 == "-" })
      if let verb = aliases[name] ?? verbs.first(where: { $0 == name }) {
        return "there is no option '\(word)' here; the command is written without dashes: 'insula \(verb)'"
      }
      let verb = rest.first { verbs.contains($0) } ?? "COMMAND"
      return "options follow the command: 'insula \(verb) \(word) ...'; 'insula help' lists all commands"
    }
    let start = "there is no command '\(word)'"
    if let habit = Habits.advice(for: word) { return "\(start); \(habit)" }
    if HelpTopic.all.contains(where: { $0.name == word }) {
      return "\(start); 'insula help \(word)' explains that topic"
    }
    let suggestion = Suggestion.text(for: word, among: verbs) { "insula \(aliases[$0] ?? $0)" }
    return "\(start)\(suggestion); 'insula help' lists all commands"
  }

  /// Says what a second word might mean.
  private static func unknown(_ word: String, of verb: String, _ family: [String]) -> String {
    let all = family.map { "'insula \($0)'" }.joined(separator: ", ")
    if word.isEmpty { return "\(verb) requires a subcommand: \(all)" }
    let seconds = family.map { String($0.dropFirst(verb.count + 1)) }
    let meant = Habits.subcommands(for: word).filter(seconds.contains)
    let close = meant.isEmpty ? Suggestion.closest(to: word, among: seconds) : meant
    let question = Suggestion.question(close.map { "insula \(verb) \($0)" })
    return "there is no command '\(verb) \(word)'\(question); known are \(all)"
  }
}

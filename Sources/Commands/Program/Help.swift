// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// `insula help`.
struct HelpCommand: Command {
  static let worksInApps = true
  static let description = CommandDescription(
    name: "help", summary: "Shows help, or prints a page of the manual.",
    arguments: [
      .init(
        name: "COMMAND|TOPIC", help: "show help for this command or topic",
        kind: .helpTopic, isRepeated: true)
    ],
    options: [
      .init(name: "man", help: "print the page of the manual in roff; without a name, list the pages")
    ],
    details: ["Topics: \(HelpTopic.all.map(\.name).joined(separator: ", "))."],
    examples: [
      "insula help mount", "insula help exit-codes", "insula help --man insula-mount.1 | man -l -",
    ])

  private let words: [String]
  private let wantsManual: Bool

  init(_ arguments: ParsedArguments) {
    words = arguments.positional
    wantsManual = arguments.has("man")
  }

  var goesByConfiguration: Bool { false }

  func run(in context: Context) throws -> ExitCode {
    if wantsManual { return try printManual(context) }
    guard let first = words.first else {
      context.console.print(text: HelpText.overview())
      return .ok
    }
    let verb = words.joined(separator: " ")
    if let topic = HelpTopic.all.first(where: { $0.name == verb }) {
      context.console.print(text: topic.text())
      return .ok
    }
    let name = ([Insula.aliases[first] ?? first] + words.dropFirst()).joined(separator: " ")
    let found = Insula.commands.map { $0.description }.filter {
      $0.name == name || $0.name.hasPrefix(name + " ")
    }
    guard !found.isEmpty else {
      let suggestion = Suggestion.text(for: verb, among: Verbs.helpTopics + Self.names)
      throw UsageError(
        message: "there is no command or topic '\(verb)'\(suggestion); 'insula help' lists them")
    }
    context.console.print(text: found.map(HelpText.text).joined(separator: "\n"))
    return .ok
  }

  private static var names: [String] { Insula.commands.map { $0.description.name } }

  private func printManual(_ context: Context) throws -> ExitCode {
    guard !words.isEmpty else {
      context.console.print(lines: ManualPages.all.map(\.fileName))
      return .ok
    }
    let name = words.joined(separator: "-")
    guard let page = ManualPages.all.first(where: { [$0.fileName, $0.name, $0.shortName].contains(name) })
    else {
      let suggestion = Suggestion.text(for: name, among: ManualPages.all.map(\.fileName))
      throw UsageError(
        message: "the manual has no page '\(name)'\(suggestion); 'insula help --man' lists the pages")
    }
    context.console.print(exactly: Array(page.roff.utf8))
    return .ok
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// `insula config`.
struct ConfigCommand: Command {
  static let description = CommandDescription(
    name: "config", summary: "Shows what is configured, and which file or variable says so.",
    arguments: [
      .init(
        name: "KEY|FILE", help: "print only the value of this key; with --check, the file to check",
        kind: .either(.word(ConfigurationKey.all.map(\.path)), .file))
    ],
    options: [
      .init(name: "check", help: "check the configuration files, or FILE before it is put in its place"),
      CommandDescription.json,
    ],
    details: [
      """
      The files are /etc/insula/insula.conf and, for everyone but root, ~/.config/insula/insula.conf. A value
      on the command line comes before variables of the environment, then the user's file, then the machine's
      file. insula.conf(5) and 'insula help configuration' describe them.
      """,
      "Exit code 8 means that something is wrong with a file.",
    ],
    examples: ["insula config", "insula config user.store", "insula config --check ./insula.conf"])

  private let word: String?
  private let checks: Bool
  private let json: Bool
  private let key: ConfigurationKey?

  init(_ arguments: ParsedArguments) throws(UsageError) {
    word = arguments.argument(0)
    checks = arguments.has("check")
    json = arguments.has("json")
    guard let word, !checks else {
      key = nil
      return
    }
    key = ConfigurationKey.all.first { $0.path == word }
    guard key != nil else {
      let suggestion = Suggestion.text(for: word, among: ConfigurationKey.all.map(\.path))
      throw Self.description.error("there is no key '\(word)'\(suggestion); 'insula config' lists the keys")
    }
  }

  /// It tells what is wrong, and shows the rest.
  var goesByConfiguration: Bool { false }

  func run(in context: Context) throws -> ExitCode {
    if checks { return try check(context) }
    var context = context
    context.configuration = Configuration(for: context)
    for problem in context.configuration.problems { context.console.note(problem) }
    show(context)
    return context.configuration.problems.isEmpty ? .ok : .problemsFound
  }

  /// A value for programs.
  private struct Row: Encodable {
    let key: String
    let value: String
    let from: String
    var file: String?
    var line: Int?

    init(_ key: ConfigurationKey, _ context: Context) {
      let setting = context.setting(key)
      self.key = key.path
      value = setting.value
      from = setting.origin.words
      if case .file(let path, let number) = setting.origin { (file, line) = (path, number) }
    }
  }

  private func show(_ context: Context) {
    if let key {
      let row = Row(key, context)
      return json ? context.console.print(json: row) : context.console.print(path: row.value)
    }
    // Root's places are the machine's.
    let keys = ConfigurationKey.all.filter { !(context.isRoot && $0.section == .user) }
    context.console.print(
      list: keys.map { Row($0, context) }, json: json, none: "", columns: ["KEY", "VALUE", "FROM"]
    ) { [$0.key, $0.value.isEmpty ? "-" : $0.value, $0.from] }
  }

  /// A problem for programs.
  private struct Found: Encodable {
    let file: String
    var line: Int?
    let problem: String
  }

  private func check(_ context: Context) throws -> ExitCode {
    var found: [Found] = []
    var checked: [String] = []
    if let word {
      let bytes = try context.contents(of: word, limit: ConfigurationText.sizeLimit)
      let isOwn = ConfigurationFile.own(context)?.path == context.absolute(word)
      found = Self.problems(ConfigurationText(bytes, isMachines: !isOwn), word)
      checked = [word]
    } else {
      for file in ConfigurationFile.all(context) {
        guard let text = file.read() else { continue }
        found += Self.problems(text, file.path)
        checked.append(file.path)
      }
    }
    if json {
      context.console.print(json: found)
    } else if found.isEmpty {
      context.console.say(
        checked.isEmpty
          ? "There is no configuration file." : "\(checked.joined(separator: " and ")): in order.")
    } else {
      for problem in found {
        context.console.note(
          ConfigurationText.Problem(line: problem.line, message: problem.problem).sentence(in: problem.file))
      }
    }
    return found.isEmpty ? .ok : .problemsFound
  }

  private static func problems(_ text: ConfigurationText, _ path: String) -> [Found] {
    text.problems.map { Found(file: path, line: $0.line, problem: $0.message) }
  }
}

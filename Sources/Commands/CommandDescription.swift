// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What there is to know of a verb.
///
/// Parsing, help, error messages, completions and the README's table come from here.
struct CommandDescription: Sendable {
  /// Something that is given by its place.
  struct Argument: Sendable {
    /// What completion offers for it.
    enum Kind: Sendable { case directory, account, word([String]), other }

    let name: String
    let help: String
    var isRequired = false
    var kind = Kind.other
  }

  /// Something that is given by its name.
  struct Option: Sendable {
    /// Without dashes.
    let name: String
    var short: Character?
    /// What stands for its value in the help; nil for a flag.
    var value: String?
    let help: String
    /// For our own use, so not in the help.
    var isHidden = false

    /// As it is typed.
    var spelling: String {
      let names = [short.map { "-\($0)" }, name.count > 1 ? "--\(name)" : nil].compactMap { $0 }
      return names.joined(separator: ", ") + (value.map { " \($0)" } ?? "")
    }
  }

  /// The verb, or verb and subverb.
  let name: String
  /// One line.
  let summary: String
  var arguments: [Argument] = []
  var options: [Option] = []
  /// Paragraphs for the help.
  var details: [String] = []
  var examples: [String] = []

  static let json = Option(name: "json", help: "print JSON, for programs")

  /// What may follow `insula`.
  var synopsis: String {
    var words = [name]
    for argument in arguments { words.append(argument.isRequired ? argument.name : "[\(argument.name)]") }
    for option in options where !option.isHidden {
      let name = option.short.map { "-\($0)" } ?? "--\(option.name)"
      words.append("[\(name)\(option.value.map { " \($0)" } ?? "")]")
    }
    return words.joined(separator: " ")
  }
}

/// A verb.
protocol Command: SendableMetatype {
  static var description: CommandDescription { get }
  init(_ arguments: ParsedArguments) throws(UsageError)
  func run(in context: Context) throws -> ExitCode
}

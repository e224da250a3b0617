// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What there is to know of a verb.
///
/// Parsing, help, error messages, completions and the README's table come from here.
struct CommandDescription: Sendable {
  /// Something that is given by its place.
  struct Argument: Sendable {
    let name: String
    let help: String
    var isRequired = false
    /// What completion offers for it.
    var kind = ValueKind.other
    /// Whether there may be several; only of the last argument, or of one before `--`.
    var isRepeated = false
    /// Whether nothing may stand for it, as among what is passed on.
    var mayBeEmpty = false
    /// Whether `--` must stand before it, since what comes before it may be repeated too.
    var followsDashes = false

    /// As it stands in a synopsis.
    var placeholder: String {
      let words = (followsDashes ? "-- " : "") + name + (isRepeated ? "..." : "")
      return isRequired ? words : "[\(words)]"
    }
  }

  /// A word that says what is done, as in Mac's `chmod`: known as a whole, not by its letters, and with a
  /// fixed number of words after it, whatever those begin with.
  struct Action: Sendable {
    /// As it is typed.
    let word: String
    /// What stands for the words that it takes.
    var values: [String] = []
    let help: String
  }

  /// Something that is given by its name.
  struct Option: Sendable {
    /// Without dashes.
    let name: String
    var short: Character?
    /// What stands for its value in the help; nil for a flag.
    var value: String?
    let help: String
    /// Whether all words after it are its values, whatever they begin with.
    var takesRest = false
    /// For our own use, so not in the help.
    var isHidden = false
    /// Whether it may be given several times, with other values.
    var mayRepeat = false
    /// Whether nothing may stand for its value.
    var mayBeEmpty = false
    /// What completion offers for its value.
    var kind = ValueKind.other

    /// As it is typed in full.
    var typed: String { name.count > 1 ? "--\(name)" : "-\(name)" }

    /// As help shows it.
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
  /// What may be done, one thing at a time.
  var actions: [Action] = []
  /// What may stand in front of the arguments and say what is done to them.
  var change: Argument?
  /// Whether a word that begins with a dash is an argument all the same.
  var isArgument: @Sendable (String) -> Bool = { _ in false }
  /// Paragraphs for the help.
  var details: [String] = []
  var examples: [String] = []
  /// What is done with the store that is named.
  var storeUse = StoreUse.changes
  /// Whether root has it carried out by the user that `--user` names, in a process of theirs.
  var becomesUser = false

  static let json = Option(name: "json", help: "print JSON, for programs")

  /// What every command takes, also before its name.
  static let general = [
    Option(name: "quiet", short: "q", help: "print only results and errors, not what was done"),
    Option(name: "verbose", short: "v", help: "say which files, store and daemon are used"),
  ]

  /// Whether a word is one of these.
  static func isGeneral(_ word: String) -> Bool {
    general.contains { "--\($0.name)" == word || $0.short.map { "-\($0)" } == word }
  }

  /// What may follow `insula`; the help lists the options that have no room here.
  var synopsis: String {
    let all = synopsis(withOptions: true)
    return all.count <= 112 ? all : synopsis(withOptions: false)
  }

  private func synopsis(withOptions: Bool) -> String {
    var words = [name] + [change].compactMap { $0?.placeholder } + arguments.map(\.placeholder)
    guard withOptions else { return (words + ["[OPTION...]"]).joined(separator: " ") }
    let visible = options.filter { !$0.isHidden }
    // Many letters are written as one word, as in the manual of `ls`.
    let letters = visible.filter { $0.name.count == 1 && $0.value == nil }
    let areJoined = letters.count > 4
    if areJoined { words.append("[-\(letters.map(\.name).joined())]") }
    for option in visible where !(areJoined && option.name.count == 1 && option.value == nil) {
      let name = option.short.map { "-\($0)" } ?? "--\(option.name)"
      words.append("[\(name)\(option.value.map { " \($0)" } ?? "")]")
    }
    return words.joined(separator: " ")
  }

  /// How help is asked for: `-h` means something else to some verbs.
  var helpSpellings: [String] {
    options.contains { $0.short == "h" } ? ["--help"] : ["-h", "--help"]
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// What may stand where a person is typing, by the descriptions of the verbs.
struct Completion {
  /// A word that may stand there, with a few words about it.
  struct Candidate: Equatable {
    let word: String
    var help = ""
  }

  /// Words that are known without asking anyone.
  private(set) var candidates: [Candidate] = []
  /// What else may stand there.
  private(set) var kind = ValueKind.other
  /// What stands before a candidate in the same word: `--store=`.
  private(set) var prefix = ""
  /// What was given for the store and the user, which decide which apps there are.
  private(set) var store: String?
  private(set) var user: String?
  private let current: String

  /// The words after `insula`; the last one is being typed.
  init(_ words: [String]) {
    current = words.last ?? ""
    let before = words.dropLast().drop { CommandDescription.isGeneral($0) }
    guard let first = before.first else {
      offerVerbs()
      return
    }
    let verb = Insula.aliases[first] ?? first
    let seconds = Verbs.subverbs(of: verb)
    if before.count == 1, !seconds.isEmpty {
      offer(seconds.map { Candidate(word: $0, help: Verbs.summary("\(verb) \($0)")) })
      return
    }
    let name = seconds.isEmpty ? verb : before.prefix(2).joined(separator: " ")
    guard let description = Verbs.all.first(where: { $0.name == name }) else { return }
    var state = State(description)
    for word in before.dropFirst(seconds.isEmpty ? 1 : 2) { state.take(word) }
    (store, user) = (state.values["store"], state.values["user"])
    offer(at: state, description)
  }

  /// How far a command line has come.
  private struct State {
    let description: CommandDescription
    var positional = 0
    /// The option whose value comes next.
    var option: CommandDescription.Option?
    /// How many words of an action are to come.
    var actionWords = 0
    /// Whether what comes is not ours any more.
    var isRest = false
    var takesOptions = true
    var values: [String: String] = [:]

    init(_ description: CommandDescription) { self.description = description }

    /// Whether what comes are the words of another program.
    var isOthers: Bool {
      isRest || description.arguments.last?.mayBeEmpty == true && positional >= description.arguments.count
    }

    mutating func take(_ word: String) {
      if let waiting = option {
        values[waiting.name] = word
        option = nil
      } else if actionWords > 0 {
        actionWords -= 1
      } else if isRest {
        return
      } else if word == "--" {
        takesOptions = false
      } else if takesOptions, let action = description.actions.first(where: { $0.word == word }) {
        actionWords = action.values.count
      } else if takesOptions, word.hasPrefix("-"), word.utf8.count > 1 {
        takeOption(word)
      } else {
        positional += 1
      }
    }

    private mutating func takeOption(_ word: String) {
      let name = String(word.drop { $0 == "-" }.prefix { $0 != "=" })
      guard
        let found = description.options.first(where: { option in
          word.hasPrefix("--") ? option.name == name : option.short.map { word.last == $0 } ?? false
        }), found.value != nil
      else { return }
      if found.takesRest {
        isRest = true
      } else if let equals = word.utf8.firstIndex(of: UInt8(ascii: "=")) {
        values[name] = String(word[word.utf8.index(after: equals)...])
      } else {
        option = found
      }
    }
  }

  private mutating func offer(at state: State, _ description: CommandDescription) {
    if let option = state.option { return offer(option.kind) }
    if state.actionWords > 0 { return }
    if state.isOthers {
      kind = .file
      return
    }
    if state.takesOptions, current.hasPrefix("--"),
      let equals = current.utf8.firstIndex(of: UInt8(ascii: "="))
    {
      let name = current.dropFirst(2).prefix { $0 != "=" }
      prefix = String(current[...equals])
      return offer(description.options.first { $0.name == name && $0.value != nil }?.kind ?? .other)
    }
    if state.takesOptions, ["-", "+", "="].contains(current.first) {
      return offerOptions(description)
    }
    let arguments = description.arguments
    if state.positional < arguments.count {
      offer(arguments[state.positional].kind)
    } else if let last = arguments.last, last.isRepeated {
      offer(last.kind)
    }
  }

  private mutating func offer(_ kind: ValueKind) {
    switch kind {
    case .word(let words): offer(words.map { Candidate(word: $0) })
    case .helpTopic: offer(Verbs.helpTopics.map { Candidate(word: $0, help: Verbs.summary($0)) })
    case .list(let words):
      let typed = current.dropFirst(prefix.count)
      let done = typed.utf8.lastIndex(of: UInt8(ascii: ",")).map { String(typed[...$0]) } ?? ""
      let given = done.parts(between: ",").map(String.init)
      offer(words.filter { !given.contains($0) }.map { Candidate(word: done + $0) })
    case .either(let first, let second):
      offer(first)
      self.kind = second
    case .other: break
    default: self.kind = kind
    }
  }

  private mutating func offerVerbs() {
    if current.hasPrefix("-") {
      return offer(CommandDescription.general.flatMap(Self.spelled) + [Candidate(word: "--help")])
    }
    offer(Verbs.names.map { Candidate(word: $0, help: Verbs.summary($0)) })
  }

  private mutating func offerOptions(_ description: CommandDescription) {
    let options = description.options.filter { !$0.isHidden } + CommandDescription.general
    let actions = description.actions.map { Candidate(word: $0.word, help: $0.help) }
    offer(options.flatMap(Self.spelled) + [Candidate(word: "--help", help: "print help")] + actions)
  }

  /// An option by its long name, or by its letter if it has no other.
  private static func spelled(_ option: CommandDescription.Option) -> [Candidate] {
    [Candidate(word: option.name.count > 1 ? "--\(option.name)" : "-\(option.name)", help: option.help)]
  }

  private mutating func offer(_ all: [Candidate]) {
    candidates += all.map { Candidate(word: prefix + $0.word, help: $0.help) }.filter(fits)
  }

  /// Whether a candidate goes on where the word that is being typed ends.
  func fits(_ candidate: Candidate) -> Bool { candidate.word.hasPrefix(current) }
}

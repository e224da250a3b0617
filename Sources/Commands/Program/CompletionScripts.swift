// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Completion scripts, made from the descriptions of the verbs.
enum CompletionScripts {
  static var all: [CommandDescription] { Insula.commands.map { $0.description } }

  /// The first words, and what may follow those that have a second one.
  static var verbs: [String] {
    var verbs: [String] = []
    for description in all {
      let verb = String(description.name.prefix { $0 != " " })
      if !verbs.contains(verb) { verbs.append(verb) }
    }
    return verbs
  }

  /// What help can be asked for.
  static var helpTopics: [String] { verbs + HelpTopic.all.map(\.name) }

  static func subverbs(of verb: String) -> [String] {
    all.compactMap { $0.name.hasPrefix(verb + " ") ? String($0.name.dropFirst(verb.count + 1)) : nil }
  }

  static func options(_ description: CommandDescription) -> [String] {
    let visible = description.options.filter { !$0.isHidden }
    return visible.map { $0.name.count > 1 ? "--\($0.name)" : "-\($0.name)" } + ["--help"]
      + description.actions.map(\.word)
  }
}

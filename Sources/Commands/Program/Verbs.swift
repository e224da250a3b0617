// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The words by which the verbs are called.
enum Verbs {
  static var all: [CommandDescription] { Insula.commands.map { $0.description } }

  /// The first words.
  static var names: [String] {
    var names: [String] = []
    for description in all {
      let name = String(description.name.prefix { $0 != " " })
      if !names.contains(name) { names.append(name) }
    }
    return names
  }

  /// What may follow a first word that has a second one.
  static func subverbs(of verb: String) -> [String] {
    all.compactMap { $0.name.hasPrefix(verb + " ") ? String($0.name.dropFirst(verb.count + 1)) : nil }
  }

  /// What help can be asked for.
  static var helpTopics: [String] { names + HelpTopic.all.map(\.name) }

  /// What a verb does; for the first word of several, what the first of them does.
  static func summary(_ name: String) -> String {
    all.first { $0.name == name || $0.name.hasPrefix(name + " ") }?.summary ?? ""
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// Commands that belong together, as help and the manual list them.
struct CommandGroup: Sendable {
  let title: String
  let commands: [any Command.Type]

  /// The names of the commands, those of one family as one word: `user add|list|remove`.
  var names: [String] {
    var families: [(verb: String, second: [String])] = []
    for name in commands.map({ $0.description.name }) {
      let words = name.parts(between: " ").map(String.init)
      let verb = words[0]
      if families.last?.verb == verb {
        families[families.count - 1].second += words.dropFirst()
      } else {
        families.append((verb, Array(words.dropFirst())))
      }
    }
    return families.map { family in
      family.second.isEmpty ? family.verb : "\(family.verb) \(family.second.joined(separator: "|"))"
    }
  }
}

extension CommandGroup {
  /// The group that a command is in.
  static func containing(_ description: CommandDescription) -> CommandGroup? {
    Insula.groups.first { $0.commands.contains { $0.description.name == description.name } }
  }
}

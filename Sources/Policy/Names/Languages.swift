// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The languages in which somebody wants to be shown names, best first.
package struct Languages: Equatable, Sendable {
  /// As files and tables of languages are named: `de-AT`, `de_AT`, `de`.
  package let names: [String]

  /// No language at all: everything is called what it is called on disk.
  package static let none = Languages(names: [])

  init(names: [String]) { self.names = names }

  /// Those of an environment, by the rules of `gettext(3)`.
  package init(environment: [String: String]) {
    let locale = ["LC_ALL", "LC_MESSAGES", "LANG"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
    guard let locale, !["C", "POSIX"].contains(locale.prefix { $0 != "." }) else {
      self = .none
      return
    }
    let list = environment["LANGUAGE"].flatMap { $0.isEmpty ? nil : $0 }
    self.init(words: (list ?? locale).split(separator: ":").map(String.init))
  }

  /// Understands one language, as `de`, `de-AT`, `de_AT.UTF-8` or `zh-Hans`; nil if it is none.
  package init?(_ word: String) {
    self.init(words: [word])
    if names.isEmpty { return nil }
  }

  /// Those of a list, as `LANGUAGE` has it.
  package init(list: String) { self.init(words: list.split(separator: ":").map(String.init)) }

  /// Those of several words; what can't be a language is left out.
  private init(words: [String]) {
    var names: [String] = []
    for name in words.prefix(Self.limit).flatMap(Self.spellings) where !names.contains(name) {
      names.append(name)
    }
    self.names = names
  }

  /// How many somebody may want; each is a file to look for.
  private static let limit = 8

  /// The names that files for a language may have, the closest first; none if it is no language.
  ///
  /// They become names of files, so nothing but letters, digits and what joins them is in them.
  private static func spellings(of word: String) -> [String] {
    let plain = word.prefix { $0 != "." && $0 != "@" }
    guard plain.utf8.count <= 32 else { return [] }
    var parts = plain.split(omittingEmptySubsequences: false) { $0 == "-" || $0 == "_" }.map(String.init)
    guard !parts.isEmpty,
      parts.allSatisfy({ part in
        (1...8).contains(part.utf8.count)
          && part.unicodeScalars.allSatisfy { scalar in
            switch scalar {
            case "a"..."z", "A"..."Z", "0"..."9": true
            default: false
            }
          }
      }), (2...3).contains(parts[0].count)
    else { return [] }
    parts[0] = parts[0].lowercased()
    // Two letters are a place, four a script.
    for index in parts.indices.dropFirst() {
      let part = parts[index]
      parts[index] = part.count == 4 ? part.prefix(1).uppercased() + part.dropFirst().lowercased() : part
      if part.count == 2 { parts[index] = part.uppercased() }
    }
    var names = parts.count > 1 ? [parts.joined(separator: "-"), parts.joined(separator: "_")] : []
    // The code that stands for both Norwegian languages, of which one has names.
    if parts[0] == "no" { names.append("nb") }
    if let script = script(of: parts) { names.append("\(parts[0])-\(script)") }
    return names + [parts[0]]
  }

  /// In which of its two scripts Chinese is written there; nil for all else.
  private static func script(of parts: [String]) -> String? {
    guard parts[0] == "zh" else { return nil }
    if let given = parts.first(where: { $0.hasPrefix("Han") }) { return parts.count > 2 ? given : nil }
    return parts.contains { ["TW", "HK", "MO"].contains($0) } ? "Hant" : "Hans"
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What must be true of code that is nested in a bundle, besides its being the very code that was sealed.
///
/// In Apple's language of requirements it is `identifier "..." and certificate leaf[subject.OU] = "..."`, and
/// of that language only such conjunctions are understood: what is not understood is not met.
package struct Requirement: Equatable, Sendable {
  package let identifier: String
  package let team: String

  package init(identifier: String, team: String) {
    self.identifier = identifier
    self.team = team
  }

  /// Reads the language; nil for all else that it can say.
  package init?(_ text: String) {
    guard let words = Self.words(of: text) else { return nil }
    var identifier: String?
    var team: String?
    for clause in words.split(separator: .bare("and"), omittingEmptySubsequences: false) {
      let clause = Array(clause)
      if clause.count == 2, clause[0] == .bare("identifier"), identifier == nil {
        identifier = clause[1].value
      } else if clause.count == 4, team == nil,
        Array(clause[..<3]) == [.bare("certificate"), .bare("leaf[subject.OU]"), .bare("=")]
      {
        team = clause[3].value
      } else {
        return nil
      }
    }
    guard let identifier, let team else { return nil }
    self.init(identifier: identifier, team: team)
  }

  private enum Word: Equatable {
    case bare(String)
    case quoted(String)

    var value: String {
      switch self {
      case .bare(let text), .quoted(let text): text
      }
    }
  }

  /// Words between spaces; quotes make one of several, and neither identifiers nor teams have anything to
  /// escape in them.
  private static func words(of text: String) -> [Word]? {
    var words: [Word] = []
    var rest = Substring(text)
    guard !text.utf8.contains(UInt8(ascii: "\\")) else { return nil }
    while true {
      rest = rest.drop { $0 == " " || $0 == "\n" || $0 == "\t" }
      guard let first = rest.first else { return words }
      if first == "\"" {
        rest = rest.dropFirst()
        guard let end = rest.firstIndex(of: "\"") else { return nil }
        words.append(.quoted(String(rest[..<end])))
        rest = rest[end...].dropFirst()
      } else {
        let word = rest.prefix { $0 != " " && $0 != "\n" && $0 != "\t" && $0 != "\"" }
        words.append(.bare(String(word)))
        rest = rest.dropFirst(word.count)
      }
    }
  }
}

extension Requirement: CustomStringConvertible {
  package var description: String {
    "identifier \"\(identifier)\" and certificate leaf[subject.OU] = \"\(team)\""
  }
}

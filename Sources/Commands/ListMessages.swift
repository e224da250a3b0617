// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

// Words for what can be wrong with an entry and with a change of a list.

extension CommandFailure {
  init(_ error: EntryTextError) {
    let what =
      switch error.reason {
      case .noName: "a name must come first, as in 'user:anna allow read,write'"
      case .unknownName(let name, let kind): Self.unknown(name, kind)
      case .unknownVerb(""): "'allow' or 'deny' must follow the name"
      case .unknownVerb(let verb): "'\(verb)' is neither 'allow' nor 'deny'"
      case .unknownWord(let word): "there is no right or flag '\(word)'; there are \(Self.allWords)"
      case .noWords: "no right is named; there are \(Self.allWords)"
      case .noEntries: "no entry is given"
      case .tooLong: "that is too much text for a list"
      case .tooManyEntries: "there are more than \(AccessControlList.maximumCount) entries"
      }
    self.init(.usage, "acl: " + (error.text.isEmpty ? "" : "'\(error.text)': ") + what)
  }

  private static let allWords = EntryWords.all.joined(separator: ", ")

  private static func unknown(_ name: String, _ kind: Principal.NameKind) -> String {
    switch kind {
    case .user: return "there is no user '\(name)'"
    case .group: return "there is no group '\(name)'"
    case .either:
      let isNumber = name.allSatisfy { $0.isASCII && $0.isNumber }
      return "there is no user or group '\(name)'"
        + (isNumber ? "; an id is written 'user:\(name)' or 'group:\(name)'" : "")
    }
  }

  init(_ error: ListEditError, _ names: AccountNames) {
    let what =
      switch error {
      case .noList: "it has no access control list"
      case .notCanonical:
        "its list is not in canonical order, so the entry has no place of its own; say which with '+a# N'"
      case .noEntry(let index, let count):
        "there is no place \(index) in its list, which has \(count == 1 ? "1 entry" : "\(count) entries")"
          + ", counted from 0"
      case .nothingMatches(let entry):
        "no entry of its list has '\(entry.principal.text(names: names)) \(entry.kind.verb)'"
      case .tooManyEntries(let count):
        "its list would have \(count) entries; \(AccessControlList.maximumCount) are the most"
      }
    self.init(.failed, what)
  }
}

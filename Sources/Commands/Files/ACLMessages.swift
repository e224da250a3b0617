// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

// Words for what can be wrong with an entry and with a change of an ACL.

extension CommandFailure {
  init(_ error: EntryTextError) {
    let what =
      switch error.reason {
      case .noName: "an entry must begin with a name, as in 'user:anna allow read,write'"
      case .unknownName(let name, let kind): Self.unknown(name, kind)
      case .unknownVerb(""): "'allow' or 'deny' must follow the name"
      case .unknownVerb(let verb): "'\(verb)' is neither 'allow' nor 'deny'"
      case .unknownWord(let word): "unknown right or inheritance word '\(word)'; known are \(Self.allWords)"
      case .noWords: "a right is missing; known are \(Self.allWords)"
      case .noEntries: "there is no entry"
      case .tooLong: "the text is too long for an ACL"
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
        + (isNumber
          ? "; for an id, write 'user:\(name)' or 'group:\(name)'"
          : "; 'getent passwd' and 'getent group' list them")
    }
  }

  init(_ error: ACLEditError, _ names: AccountNames) {
    let what =
      switch error {
      case .noACL: "it has no ACL"
      case .notCanonical:
        "its ACL is not in canonical order; give the position of the entry with '+a# N'"
      case .noEntry(let index, let count):
        "there is no entry \(index) in its ACL, which has \(count == 1 ? "1 entry" : "\(count) entries")"
          + ", counted from 0"
      case .nothingMatches(let entry):
        "its ACL has no entry with '\(entry.principal.text(names: names)) \(entry.kind.verb)'"
      case .tooManyEntries(let count):
        "its ACL would have \(count) entries; the maximum is \(AccessControlList.maximumCount)"
      }
    self.init(.failed, what)
  }
}

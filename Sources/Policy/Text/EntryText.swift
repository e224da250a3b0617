// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Why a text is not what it should be: an entry of an ACL, or several.
package struct EntryTextError: Error, Equatable, Sendable {
  package enum Reason: Equatable, Sendable {
    /// No name stands at the beginning.
    case noName
    case unknownName(String, Principal.NameKind)
    /// Neither "allow" nor "deny" follows the name; what does may be empty.
    case unknownVerb(String)
    /// Neither a right nor a word for inheritance.
    case unknownWord(String)
    /// There is no word at all after the verb.
    case noWords
    /// There is no entry at all.
    case noEntries
    case tooLong
    case tooManyEntries
  }

  /// The line that it is about.
  package let text: String
  package let reason: Reason

  package init(_ text: String, _ reason: Reason) {
    self.text = text
    self.reason = reason
  }
}

// The grammar is that of Mac's chmod:
//
//     [user:|group:]NAME SEPARATOR allow|deny SEPARATOR word[,word...]
//
// The name ends at the first ':' if there is any, so that names with blanks can be written, and at a blank
// otherwise. After the verb stands either. Beyond that, what `ls -le` prints is read too: the number in
// front, and `inherited` before the verb.

extension AccessControlEntry {
  /// Reads one line.
  package init(text: String, names: AccountNames) throws(EntryTextError) {
    var rest = Self.withoutNumber(Substring(text))
    let kind = Self.takeNameKind(&rest)
    let separator = rest.utf8.contains(colon) ? colon : blank
    let name = Self.takeWord(&rest) { $0 == separator }
    guard !name.isEmpty else { throw EntryTextError(text, .noName) }
    guard let principal = Principal(name: String(name), kind, names: names) else {
      throw EntryTextError(text, .unknownName(String(name), kind))
    }

    var inheritance: Inheritance = []
    var verb = Self.takeWord(&rest) { $0 == colon || $0 == blank }
    if verb == EntryWords.inherited {
      inheritance.insert(.inherited)
      verb = Self.takeWord(&rest) { $0 == colon || $0 == blank }
    }
    guard let verbKind = [Kind.permit, .deny].first(where: { $0.verb == verb }) else {
      throw EntryTextError(text, .unknownVerb(String(verb)))
    }

    var rights: Rights = []
    let words = rest.split(separator: ",")
    guard !words.isEmpty else { throw EntryTextError(text, .noWords) }
    for word in words {
      if let right = EntryWords.right(word) {
        rights.formUnion(right)
      } else if let flag = EntryWords.inheritance(word) {
        inheritance.formUnion(flag)
      } else {
        throw EntryTextError(text, .unknownWord(String(word)))
      }
    }
    self.init(verbKind, principal, rights, inheritance)
  }

  /// The line as `ls -le` prints it, without the number in front.
  package func text(isDirectory: Bool, names: AccountNames, numeric: Bool = false) -> String {
    let inherited = inheritance.contains(.inherited) ? " " + EntryWords.inherited : ""
    let principal = principal.text(names: names, numeric: numeric)
    return "\(principal)\(inherited) \(kind.verb) \(words(isDirectory: isDirectory).joined(separator: ","))"
  }

  /// The rights and where the entry goes, as `ls -le` prints them.
  ///
  /// What says nothing of a file is not printed for one, though it is kept.
  package func words(isDirectory: Bool) -> [String] {
    var words: [String] = []
    for (right, onFiles, onDirectories) in EntryWords.rights where rights.contains(right) {
      if let word = isDirectory ? onDirectories : onFiles { words.append(word) }
    }
    for (control, word, onFiles) in EntryWords.controls where inheritance.contains(control) {
      if isDirectory || onFiles { words.append(word) }
    }
    return words
  }

  /// Takes away " 12: ", as `ls -le` prints it before an entry; no name is followed by a colon and a blank.
  private static func withoutNumber(_ text: Substring) -> Substring {
    var rest = text.drop { $0 == " " }
    let number = Self.takeWord(&rest) { $0 == colon }
    guard !number.isEmpty, number.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
      rest.utf8.first == blank
    else { return text }
    return rest.dropFirst()
  }

  private static func takeNameKind(_ rest: inout Substring) -> Principal.NameKind {
    for (prefix, kind) in [("user:", Principal.NameKind.user), ("group:", .group)]
    where rest.utf8.starts(with: prefix.utf8) {
      rest = rest[rest.utf8.index(rest.startIndex, offsetBy: prefix.utf8.count)...]
      return kind
    }
    return .either
  }

  /// Takes what stands before the first separator, and the separator.
  private static func takeWord(_ rest: inout Substring, until isSeparator: (UInt8) -> Bool) -> Substring {
    guard let end = rest.utf8.firstIndex(where: isSeparator) else {
      defer { rest = "" }
      return rest
    }
    let word = rest[..<end]
    rest = rest[rest.utf8.index(after: end)...]
    return word
  }
}

extension AccessControlList {
  /// More text than this is refused: an ACL as long as can be is shorter.
  package static let maximumTextLength = 1 << 16

  /// Reads entries, one to a line; empty lines are passed over.
  package static func entries(
    text: String, names: AccountNames
  ) throws(EntryTextError) -> [AccessControlEntry] {
    guard text.utf8.count <= maximumTextLength else { throw EntryTextError("", .tooLong) }
    var entries: [AccessControlEntry] = []
    for line in text.split(whereSeparator: \.isNewline) {
      entries.append(try AccessControlEntry(text: String(line), names: names))
      guard entries.count <= maximumCount else { throw EntryTextError("", .tooManyEntries) }
    }
    guard !entries.isEmpty else { throw EntryTextError("", .noEntries) }
    return entries
  }

  /// The lines that `ls -le` prints below an object.
  package func lines(isDirectory: Bool, names: AccountNames, numeric: Bool = false) -> [String] {
    entries.enumerated().map { index, entry in
      " \(index): \(entry.text(isDirectory: isDirectory, names: names, numeric: numeric))"
    }
  }
}

private let colon = UInt8(ascii: ":")
private let blank = UInt8(ascii: " ")

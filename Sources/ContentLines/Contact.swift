// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What is told of a contact.
package struct Contact: Codable, Equatable, Sendable {
  /// The card's own; nil if it has none.
  package var id: String?
  package var name = ""
  package var given: String?
  package var family: String?
  package var organization: String?
  package var emails: [String] = []
  package var phones: [String] = []
  package var addresses: [String] = []
  /// As `1985-04-12`, or `--04-12` without a year; otherwise as it stands there.
  package var birthday: String?
  package var note: String?

  /// Of each of emails, phones and addresses.
  static let mostOfAKind = 32
}

/// The contacts of a file, one after the other.
package struct ContactReader {
  private var lines: ContentLineReader

  package init(_ bytes: [UInt8]) { lines = ContentLineReader(bytes) }

  /// Nil at the end.
  ///
  /// Cards in which nothing is told are left out.
  package mutating func next() -> Contact? {
    while let line = lines.next() {
      guard line.name == "BEGIN", line.value[...].isSame(as: "VCARD") else { continue }
      if let contact = card() { return contact }
    }
    return nil
  }

  private mutating func card() -> Contact? {
    var contact = Contact()
    var text = TextAllowance()
    var nickname: String?
    // Cards of others, as agents, stand within cards.
    var depth = 0
    while let line = lines.next() {
      switch line.name {
      case "BEGIN": depth += 1
      case "END" where depth > 0: depth -= 1
      case "END":
        contact.finish(nickname)
        return contact.isEmpty ? nil : contact
      case _ where depth > 0: break
      case "NICKNAME": nickname = nickname ?? text.take(line.text)
      default: contact.add(line, &text)
      }
    }
    // It has no end, and what it says may be half of it.
    return nil
  }
}

extension Contact {
  fileprivate mutating func add(_ line: ContentLine, _ text: inout TextAllowance) {
    switch line.name {
    case "UID": id = id ?? text.take(line.text, atMost: 200)
    case "FN": if name.isEmpty { name = text.take(line.text) ?? "" }
    case "N":
      let parts = line.parts
      family = family ?? parts.first.flatMap { text.take($0) }
      given = given ?? parts.dropFirst().first.flatMap { text.take($0) }
    case "ORG":
      organization = organization ?? text.take(line.parts.filter { !$0.isEmpty }.joined(separator: ", "))
    case "EMAIL": Self.add(line.text, to: &emails, &text)
    // vCard 4.0 writes numbers as addresses.
    case "TEL": Self.add(line.text.without(prefix: "tel:"), to: &phones, &text)
    case "ADR":
      let address = line.parts.map(\.inOneLine).filter { !$0.isEmpty }.joined(separator: ", ")
      Self.add(address, to: &addresses, &text)
    case "BDAY": birthday = birthday ?? text.take(Moment.date(line.text) ?? line.text, atMost: 40)
    case "NOTE": note = note ?? text.take(line.text, atMost: 4000)
    default: break
    }
  }

  private static func add(_ new: String, to list: inout [String], _ text: inout TextAllowance) {
    guard list.count < mostOfAKind, let taken = text.take(new) else { return }
    list.append(taken)
  }

  fileprivate var isEmpty: Bool { name.isEmpty && emails.isEmpty && phones.isEmpty && addresses.isEmpty }

  /// Who has no name has one all the same.
  fileprivate mutating func finish(_ nickname: String?) {
    guard name.isEmpty else { return }
    let whole = [given, family].compactMap { $0 }.joined(separator: " ")
    name = whole.isEmpty ? nickname ?? organization ?? emails.first ?? "" : whole
  }
}

extension String {
  /// Without a beginning that may be in letters of any case.
  fileprivate func without(prefix: String) -> String {
    let start = self.prefix(prefix.count)
    return start.lowercased() == prefix ? String(dropFirst(prefix.count)) : self
  }

  /// With blanks for its line ends.
  fileprivate var inOneLine: String {
    split { $0.isNewline }.joined(separator: " ")
  }
}

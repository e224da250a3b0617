// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import ContentLines
internal import Testing

/// Contacts, from the cards of three versions.
@Suite struct ContactReaderTests {
  private static func contacts(_ text: String) -> [Contact] {
    var reader = ContactReader(Array(text.utf8))
    var contacts: [Contact] = []
    while let contact = reader.next() { contacts.append(contact) }
    return contacts
  }

  private static func card(_ lines: String...) -> String {
    (["BEGIN:VCARD"] + lines + ["END:VCARD", ""]).joined(separator: "\r\n")
  }

  @Test func contactOfVersion3() {
    let text = Self.card(
      "VERSION:3.0", "UID:17", "N:Doe;John;Q;Dr.;", "FN:Dr. John Q Doe", "ORG:Example\\, Inc.;Sales",
      "item1.EMAIL;type=INTERNET;type=pref:john@example.com", "item1.X-ABLabel:Work",
      "EMAIL:j@example.org", "TEL;type=CELL:+49 170 1", "ADR;TYPE=HOME:;;1 Main\\nStreet;Town;;12345;Land",
      "BDAY:1985-04-12", "NOTE:likes\\, cats", "PHOTO;ENCODING=b:" + String(repeating: "QUJD", count: 50_000))
    #expect(
      Self.contacts(text) == [
        Contact(
          id: "17", name: "Dr. John Q Doe", given: "John", family: "Doe",
          organization: "Example, Inc., Sales", emails: ["john@example.com", "j@example.org"],
          phones: ["+49 170 1"], addresses: ["1 Main Street, Town, 12345, Land"], birthday: "1985-04-12",
          note: "likes, cats")
      ])
  }

  @Test func contactOfVersion21() {
    let text = Self.card(
      "VERSION:2.1", "N;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BCller;J=C3=B6rg",
      "TEL;HOME;VOICE:123", "LABEL;QUOTED-PRINTABLE:line=0D=0A=", "more", "BDAY:19850412",
      "AGENT:", "BEGIN:VCARD", "FN:Somebody else", "EMAIL:else@example.com", "END:VCARD",
      "EMAIL:m@example.com")
    #expect(
      Self.contacts(text) == [
        Contact(
          name: "Jörg Müller", given: "Jörg", family: "Müller", emails: ["m@example.com"], phones: ["123"],
          birthday: "1985-04-12")
      ])
  }

  @Test func contactOfVersion4() {
    let text = Self.card(
      "VERSION:4.0", "KIND:individual", "FN;LANGUAGE=en:Jane", "FN;LANGUAGE=fr:Jeanne",
      "TEL;VALUE=uri:tel:+1-555", "BDAY:--0412", "UID:urn:uuid:1")
    #expect(
      Self.contacts(text) == [
        Contact(id: "urn:uuid:1", name: "Jane", phones: ["+1-555"], birthday: "--04-12")
      ])
  }

  private static let names: [(lines: String, name: String?)] = [
    ("N:Doe;John", "John Doe"), ("N:;John", "John"), ("NICKNAME:Jo\r\nN:;;", "Jo"),
    ("ORG:Example", nil), ("ORG:Example\r\nTEL:1", "Example"), ("EMAIL:a@example.com", "a@example.com"),
    ("TEL:1", ""), ("NOTE:nothing else", nil), ("", nil), ("FN: \u{1b} ", nil),
  ]

  /// Whoever has no name is called something, and who is nobody is left out.
  @Test(arguments: names)
  func everyoneHasAName(lines: String, name: String?) {
    let expected = name == nil && lines.hasPrefix("ORG") ? "Example" : name
    #expect(Self.contacts(Self.card(lines)).first?.name == expected)
  }

  @Test func whatHasNoEndIsNoCard() {
    #expect(Self.contacts("BEGIN:VCARD\nFN:Half").isEmpty)
    #expect(Self.contacts("FN:Outside\nEND:VCARD\n" + Self.card("FN:In")).map(\.name) == ["In"])
    #expect(Self.contacts(Self.card("FN:A") + Self.card("FN:B")).map(\.name) == ["A", "B"])
    // However deep.
    let deep = String(repeating: "BEGIN:VCARD\n", count: 100_000)
    #expect(Self.contacts(deep + String(repeating: "END:VCARD\n", count: 99_999)).isEmpty)
  }

  @Test func contactIsNotTooLong() throws {
    let many = (0..<10_000).map { "EMAIL:\($0)@example.com" }.joined(separator: "\r\n")
    #expect(try #require(Self.contacts(Self.card(many)).first).emails.count == 32)
    let long = (0..<100).map { _ in "TEL:" + String(repeating: "é", count: 5000) }.joined(separator: "\r\n")
    let contact = try #require(Self.contacts(Self.card(long)).first)
    #expect(contact.phones.reduce(0) { $0 + $1.utf8.count } <= 12_000)
  }
}

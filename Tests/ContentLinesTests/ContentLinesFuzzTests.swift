// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import ContentLines
internal import TestSupport
internal import Testing

/// Files that were address books and calendars before something happened to them: no input stops the readers,
/// and what they tell has its limits.
@Suite struct ContentLinesFuzzTests {
  private static let samples: [[UInt8]] = [
    """
    BEGIN:VCARD\r\nVERSION:3.0\r\nUID:1\r\nN:Doe;John;Q;Dr.;\r\nFN:John\r\nORG:Example\\, Inc.;Sales\r
    item1.EMAIL;type=INTERNET,"x:y":john@example.com\r\nTEL;type=CELL:+49\r\nADR:;;1 Main\\n;Town;;1;Land\r
    BDAY:1985-04-12\r\nNOTE:fol\r\n ded\\; \\\\ note\r\nEND:VCARD\r\n
    """,
    """
    BEGIN:VCARD\nVERSION:2.1\nN;CHARSET=ISO-8859-1;ENCODING=QUOTED-PRINTABLE:M=FCller;J=
    =F6rg\nTEL;HOME:123\nAGENT:\nBEGIN:VCARD\nFN:x\nEND:VCARD\nNICKNAME:Jo\nEND:VCARD\n
    """,
    """
    BEGIN:VCALENDAR\r\nX-WR-CALNAME:Work\r\nBEGIN:VEVENT\r\nUID:e\r\nSUMMARY:A^nb\r
    DTSTART;TZID=Europe/Berlin:20240131T101500\r\nDTEND:20240131T111500Z\r\nRRULE:FREQ=DAILY\r
    DESCRIPTION:x\\ny\r\nBEGIN:VALARM\r\nEND:VALARM\r\nEND:VEVENT\r\nBEGIN:VTODO\r\nDUE:20240131\r
    PRIORITY:3\r\nSTATUS:COMPLETED\r\nEND:VTODO\r\nEND:VCALENDAR\r\n
    """,
  ].map { Array($0.utf8) }

  private static let words: [[UInt8]] = [
    "BEGIN:VCARD\n", "END:VCARD\n", "BEGIN:VEVENT\n", "END:VEVENT\n", "BEGIN:VTODO\n", "END:VTODO\n", "\n ",
    "\r\n\t", "=\n", ";", ":", ",", "\"", "\\", "^", "=", ".", "\u{feff}", "FN:",
    ";ENCODING=QUOTED-PRINTABLE:",
    "--", "99999999T999999Z", "\u{0}",
  ].map { Array($0.utf8) }

  private static func damage(_ bytes: inout [UInt8], _ random: inout SeededRandom) {
    guard !bytes.isEmpty else { return }
    let at = Int.random(in: 0..<bytes.count, using: &random)
    switch Int.random(in: 0..<6, using: &random) {
    case 0: bytes[at] = UInt8.random(in: 0...255, using: &random)
    case 1: bytes.removeSubrange(at..<min(bytes.count, at + Int.random(in: 1...12, using: &random)))
    case 2, 3: bytes.insert(contentsOf: words.randomElement(using: &random) ?? [], at: at)
    case 4: bytes.insert(contentsOf: bytes[at..<min(bytes.count, at + 60)], at: at)
    default: bytes = Array(bytes.prefix(at))
    }
  }

  /// What is told of one contact or entry has room in a page, whatever it is.
  private static let most = 14_000

  @Test(arguments: [1, 2, 3, 4] as [UInt64])
  func noInputStopsTheReaders(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var told = 0
    let inputs = fuzzInputs(usually: 100_000) / 4
    for _ in 0..<inputs {
      var bytes = Self.samples.randomElement(using: &random) ?? []
      for _ in 0..<Int.random(in: 1...6, using: &random) { Self.damage(&bytes, &random) }
      var contacts = ContactReader(bytes)
      while let contact = contacts.next() {
        told += 1
        let lists = contact.emails + contact.phones + contact.addresses
        let texts =
          lists
          + [contact.id, contact.given, contact.family, contact.organization, contact.note]
          .compactMap { $0 }
        #expect(texts.reduce(0) { $0 + $1.utf8.count } <= Self.most)
      }
      for kind in [CalendarEntry.Kind.event, .reminder] {
        var entries = CalendarReader(bytes, kind)
        while let entry = entries.next() {
          told += 1
          #expect(entry.title.utf8.count <= 1000 && (entry.start?.utf8.count ?? 0) <= 20)
        }
      }
    }
    #expect(told > inputs / 4)
  }
}

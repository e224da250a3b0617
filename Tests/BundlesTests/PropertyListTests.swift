// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import PropertyLists
internal import TestSupport
internal import Testing

@Suite struct PropertyListTests {
  private static let head = """
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
    <plist version="1.0">

    """

  private func read(_ text: String) throws -> PropertyList { try PropertyList(reading: Array(text.utf8)) }

  private func inPlist(_ text: String) throws -> PropertyList {
    try read("<plist version=\"1.0\">\(text)</plist>")
  }

  @Test(
    arguments: [
      ("<string>a</string>", .string("a")), ("<string/>", .string("")),
      ("<string>&lt;&amp;&gt;&quot;&apos;&#65;&#x1D11E;</string>", .string("<&>\"'A𝄞")),
      ("<string><![CDATA[<a> & b]]> c</string>", .string("<a> & b c")),
      ("<string> a <!-- b --> c<?d?> </string>", .string(" a  c ")),
      ("<string>a\r\nb&#13;</string>", .string("a\r\nb\r")),
      ("<integer>-9223372036854775808</integer>", .integer(.min)),
      ("<integer> +0x1F </integer>", .integer(31)),
      ("<integer>18446744073709551615</integer>", .unsigned(.max)), ("<integer>-0</integer>", .integer(0)),
      ("<real>1.5e3</real>", .real(1500)), ("<real>nan</real>", .real(.nan)),
      ("<real>-infinity</real>", .real(-.infinity)), ("<true/>", .boolean(true)),
      ("<false />", .boolean(false)),
      ("<true></true>", .boolean(true)), ("<date>2001-01-01T00:00:10Z</date>", .date(10)),
      ("<date>2024-02-29T23:59:59Z</date>", .date(730_943_999)),
      ("<date>1904-01-01T00:00:00Z</date>", .date(-3_061_152_000)),
      ("<data> AAEC\n\t/w== </data>", .data([0, 1, 2, 255])), ("<data/>", .data([])),
      ("<array><true/><!-- x --><array/></array>", .array([.boolean(true), .array([])])),
      ("<dict/>", .dictionary(.init())),
      ("<dict><key>CF$UID</key><integer>7</integer></dict>", .uid(7)),
    ] as [(String, PropertyList)])
  func xmlIsRead(text: String, expected: PropertyList) throws {
    #expect(try inPlist(text) == expected)
    #expect(try PropertyList(reading: expected.xml()) == expected)
    #expect(try PropertyList(reading: expected.binary()) == expected)
  }

  @Test(
    arguments: [
      "", "<string>a", "<string>a</strong>", "<string><b/></string>", "<string>&nbsp;</string>",
      "<string>&#0;</string>",
      "<string>&#xD800;</string>", "<string>&#x110000;</string>", "<string>&#-65;</string>",
      "<string>&#;</string>", "<string>& </string>",
      "<string>\u{1}</string>", "<string>\u{0}</string>", "<string a=\"b\">c</string>", "<integer/>",
      "<integer></integer>",
      "<integer>1 2</integer>", "<integer>0x</integer>", "<integer>18446744073709551616</integer>",
      "<integer>-9223372036854775809</integer>", "<integer>99999999999999999999999</integer>",
      "<real>0x1p3</real>", "<real>1,5</real>",
      "<real/>", "<date>2024-02-30T00:00:00Z</date>", "<date>2024-02-28</date>",
      "<date>2023-02-28T24:00:00Z</date>",
      "<date>0000-01-01T00:00:00Z</date>", "<data>A</data>", "<data>AA=A</data>", "<data>AB==</data>",
      "<data>!AAA</data>", "<data>AAAA=</data>",
      "<dict><key>a</key></dict>", "<dict><true/><true/></dict>",
      "<dict><key>a</key><true/><key>a</key><false/></dict>",
      "<dict>a</dict>", "<array>a</array>", "<array><true/>", "<bogus/>", "<true>x</true>", "<true/><true/>",
      "a<true/>", "<true/", "<",
      "<!-- <true/>", "<string><![CDATA[a</string>",
    ])
  func badXMLIsRefused(text: String) {
    #expect(throws: PropertyListError.self) { try inPlist(text) }
  }

  @Test(
    arguments: [
      "", "plist", "<true/>", "<plist><true/></plist>x", "<plist><true/></plist><plist/>", "<plist",
      "<!DOCTYPE plist [<!ENTITY a \"b\">]><plist><string>&a;</string></plist>",
      "<!DOCTYPE plist SYSTEM \"x\" [<!ENTITY a SYSTEM "
        + "\"file:///etc/passwd\">]><plist><string>&a;</string></plist>",
      "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><plist><true/></plist>", "<!DOCTYPE plist",
      "<?xml version=\"1.0\"",
    ])
  func documentsThatAreNotPropertyListsAreRefused(text: String) {
    #expect(throws: PropertyListError.self) { try read(text) }
  }

  @Test func writtenAsApplesToolsDo() throws {
    var inner = PropertyList.Dictionary()
    inner["hash2"] = .data((0..<80).map { UInt8($0) })
    inner["optional"] = .boolean(true)
    var outer = PropertyList.Dictionary()
    outer["z"] = .array([.integer(1), .real(0.5)])
    outer["Resources/a&b"] = .dictionary(inner)
    let expected =
      Self.head + """
        <dict>
        \t<key>Resources/a&amp;b</key>
        \t<dict>
        \t\t<key>hash2</key>
        \t\t<data>
        \t\tAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKiss
        \t\tLS4vMDEyMzQ1Njc4OTo7PD0+P0BBQkNERUZHSElKS0xNTk8=
        \t\t</data>
        \t\t<key>optional</key>
        \t\t<true/>
        \t</dict>
        \t<key>z</key>
        \t<array>
        \t\t<integer>1</integer>
        \t\t<real>0.5</real>
        \t</array>
        </dict>
        </plist>

        """
    #expect(String(decoding: try PropertyList.dictionary(outer).xml(), as: UTF8.self) == expected)
  }

  @Test func utf16IsRead() throws {
    let text = "<?xml version=\"1.0\" encoding=\"UTF-16\"?><plist><string>ä𝄞</string></plist>"
    let units = Array(text.utf16)
    let big: [UInt8] = [0xfe, 0xff] + units.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xff)] as [UInt8] }
    let little: [UInt8] = [0xff, 0xfe] + units.flatMap { [UInt8($0 & 0xff), UInt8($0 >> 8)] as [UInt8] }
    #expect(try PropertyList(reading: big) == .string("ä𝄞"))
    #expect(try PropertyList(reading: little) == .string("ä𝄞"))
    #expect(
      try PropertyList(reading: [0xef, 0xbb, 0xbf] + Array("<plist><true/></plist>".utf8)) == .boolean(true))
    #expect(throws: PropertyListError.self) { try PropertyList(reading: Array(big.dropLast())) }
    #expect(throws: PropertyListError.self) {
      try PropertyList(reading: [0xfe, 0xff, 0xd8, 0x00, 0x00, 0x41])
    }
    #expect(throws: PropertyListError.self) { try PropertyList(reading: [0xff, 0xfe]) }
  }

  @Test func spellingsOfOneLetterAreDifferentKeys() throws {
    let list = try inPlist("<dict><key>e\u{301}</key><true/><key>\u{e9}</key><false/></dict>")
    #expect(list.dictionary?.entries.count == 2)
    #expect(list.dictionary?["\u{e9}"] == .boolean(false))
    #expect(list != (try inPlist("<dict><key>\u{e9}</key><true/><key>e\u{301}</key><false/></dict>")))
  }

  @Test func depthIsLimited() throws {
    func nested(_ depth: Int) -> String {
      String(repeating: "<array>", count: depth) + String(repeating: "</array>", count: depth)
    }
    let deepest = try inPlist(nested(PropertyList.depthLimit))
    #expect(try PropertyList(reading: deepest.binary()) == deepest)
    #expect(try PropertyList(reading: deepest.xml()) == deepest)
    #expect(throws: PropertyListError.self) { try inPlist(nested(PropertyList.depthLimit + 1)) }
    #expect(throws: PropertyListError.self) { try inPlist(nested(100_000)) }
    #expect(throws: PropertyListError.self) { try PropertyList.array([deepest]).xml() }
    #expect(throws: PropertyListError.self) { try PropertyList.array([deepest, .array([deepest])]).binary() }
  }

  @Test func valuesThatXMLCanNotHoldAreNotWritten() {
    for value in [.string("\u{1}"), .date(.nan), .date(1e20), .date(-1e20)] as [PropertyList] {
      #expect(throws: PropertyListError.self) { try value.xml() }
    }
  }
}

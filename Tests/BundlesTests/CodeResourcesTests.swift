// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Glibc
internal import TestSupport
internal import Testing

/// The seal as a property list.
@Suite struct CodeResourcesTests {
  private static let digest = "<data>\(String(repeating: "A", count: 43))=</data>"
  private static let short = "<data>\(String(repeating: "A", count: 27))=</data>"

  private func seal(
    files2: String, rules2: String = "<key>^.*</key><true/>", files: String = "", rules: String = ""
  ) throws -> ResourceSeal {
    try ResourceSeal(
      reading: Array(
        """
        <plist><dict><key>files</key><dict>\(files)</dict><key>rules</key><dict>\(rules)</dict>
        <key>files2</key><dict>\(files2)</dict><key>rules2</key><dict>\(rules2)</dict></dict></plist>
        """.utf8))
  }

  private static func entry(_ path: String) -> String {
    "<key>\(path)</key><dict><key>hash2</key>\(digest)</dict>"
  }

  private func kind(_ body: () throws -> Void) -> Finding.Kind? {
    do {
      try body()
      return nil
    } catch {
      return (error as? Finding)?.kind
    }
  }

  @Test(
    arguments: [
      ("a", nil), ("a/b/c", nil), ("a b\u{e4}", nil), (".hidden", nil), ("..a", nil), ("", .badName),
      ("/a", .badName), ("a/", .badName), ("a//b", .badName),
      (".", .badName), ("..", .badName), ("../a", .badName), ("a/../b", .badName), ("a/./b", .badName),
      (String(repeating: "a", count: 256), .badName),
      (String(repeating: "a/", count: 100) + "a", nil), (String(repeating: "a/", count: 101) + "a", .tooDeep),
      (String(repeating: String(repeating: "a", count: 199) + "/", count: 20) + "a", .tooDeep),
    ] as [(String, Finding.Kind?)])
  func pathsGoDown(path: String, expected: Finding.Kind?) {
    #expect(kind { _ = try seal(files2: Self.entry(path)) } == expected)
  }

  @Test(
    arguments: [
      (["a", "b"], nil), (["a", "a/b"], nil), (["x/a", "y/A"], nil), (["a", "A"], .ambiguousNames),
      (["x/a", "X/b"], .ambiguousNames),
      (["e\u{301}", "\u{e9}"], .ambiguousNames), (["\u{df}", "ss"], .ambiguousNames),
      (["\u{c9}", "e\u{301}"], .ambiguousNames),
      (["a/b/c", "a/b/d", "A/c"], .ambiguousNames), (["a.b", "a/b", "A b"], nil),
      (["a", "a"], .malformedCodeResources),
      (["\u{3c3}", "\u{3c2}"], .ambiguousNames), (["\u{37e}/a", ";/b"], .ambiguousNames),
      (["\u{e9}/a", "\u{e9}/b", "\u{e8}/a"], nil), (["a/\u{212a}", "a/k", "b/k"], .ambiguousNames),
    ] as [([String], Finding.Kind?)])
  func namesDifferInMoreThanSpelling(paths: [String], expected: Finding.Kind?) {
    #expect(kind { _ = try seal(files2: paths.map(Self.entry).joined()) } == expected)
  }

  @Test(
    arguments: [
      "<true/>", "<string>a</string>", "<dict/>", "<data>AAAA</data>",
      "<dict><key>hash2</key>\(short)</dict>",
      "<dict><key>hash2</key><string>a</string></dict>", "<dict><key>hash</key>\(digest)</dict>",
      "<dict><key>optional</key><true/></dict>",
      "<dict><key>hash2</key>\(digest)<key>optional</key><integer>1</integer></dict>",
      "<dict><key>hash2</key>\(digest)<key>symlink</key><string>a</string></dict>",
      "<dict><key>symlink</key><true/></dict>",
      "<dict><key>symlink</key><string></string></dict>", "<dict><key>cdhash</key>\(short)</dict>",
      "<dict><key>cdhash</key>\(digest)<key>requirement</key><string>a</string></dict>",
      "<dict><key>requirement</key><string>a</string></dict>",
    ])
  func badEntriesAreRefused(value: String) {
    #expect(kind { _ = try seal(files2: "<key>a</key>\(value)") } == .malformedCodeResources)
  }

  @Test(
    arguments: [
      "", "<plist><array/></plist>", "<plist><dict/></plist>",
      "<plist><dict><key>files</key><dict/></dict></plist>",
      "<plist><dict><key>files</key><dict/><key>rules</key><array/></dict></plist>",
      "<plist><dict><key>files</key><dict/><key>rules</key><dict/><key>files2</key><dict/></dict></plist>",
      "<plist><dict><key>files</key><dict/><key>rules</key><dict/>"
        + "<key>files2</key><dict/><key>files2</key><dict/></dict></plist>",
    ])
  func sealsThatAreNoneAreRefused(text: String) {
    #expect(kind { _ = try ResourceSeal(reading: Array(text.utf8)) } == .malformedCodeResources)
  }

  @Test(arguments: [
    "<key>(</key><true/>", "<key>^.*</key><integer>1</integer>",
    "<key>^.*</key><dict><key>weight</key><real>nan</real></dict>",
  ])
  func badRulesAreRefused(rules: String) {
    #expect(kind { _ = try seal(files2: "", rules2: rules) } == .badRules)
  }

  @Test func allDigestsAreKnown() throws {
    let bundle = try TestBundle(.flat)
    try bundle.sign()
    // By the standard tools, as other signers would.
    let script = """
      import hashlib, plistlib, sys
      path = sys.argv[1] + '/_CodeSignature/CodeResources'
      seal = plistlib.load(open(path, 'rb'))
      data = open(sys.argv[1] + '/a.dat', 'rb').read()
      key, digest = {
        'hash': ('hash', hashlib.sha1(data).digest()), 'hash2': ('hash2', hashlib.sha256(data).digest()),
        'hash3': ('hash3', hashlib.sha256(data).digest()[:20]), \
      'hash4': ('hash4', hashlib.sha384(data).digest()),
        'hash5': ('hash5', hashlib.sha512(data).digest())}[sys.argv[2]]
      seal['files2']['a.dat'] = {key: digest}
      plistlib.dump(seal, open(path, 'wb'), fmt=plistlib.FMT_BINARY)
      """
    for key in ["hash", "hash2", "hash3", "hash4", "hash5"] {
      try TestBundle.write([1, 2, 3], to: bundle.base + "/a.dat")
      #expect(try Program.run(["python3", "-c", script, bundle.base, key]).status == 0)
      #expect(try bundle.findingsOfSeal().map(\.kind) == (key == "hash" ? [.weakDigest] : []))
      try TestBundle.write([1, 2, 4], to: bundle.base + "/a.dat")
      #expect(try bundle.findingsOfSeal().map(\.kind) == [.changed])
    }
  }

  /// What is listed twice, with and without a list of the second version.
  @Test func firstVersionAloneIsReadAndWeak() throws {
    let bundle = try TestBundle(.flat)
    unlink(bundle.base + "/link")
    try bundle.sign()
    let script = """
      import plistlib, sys
      path = sys.argv[1] + '/_CodeSignature/CodeResources'
      seal = plistlib.load(open(path, 'rb'))
      plistlib.dump({'files': seal['files'], 'rules': seal['rules']}, open(path, 'wb'))
      """
    #expect(try Program.run(["python3", "-c", script, bundle.base]).status == 0)
    let findings = try bundle.findingsOfSeal()
    #expect(
      Set(findings.map(\.kind)) == [.weakDigest, .added] && findings.first?.path == ".DS_Store", "\(findings)"
    )
    try TestBundle.write([0], to: bundle.base + "/a.dat")
    #expect(try bundle.findingsOfSeal().contains { $0.kind == .changed && $0.path == "a.dat" })
  }

  @Test func weakRulesAreFound() throws {
    let bundle = try TestBundle(.flat)
    try bundle.sign()
    let path = bundle.base + "/_CodeSignature/CodeResources"
    let text = String(decoding: try TestBundle.read(path), as: UTF8.self)
    let weak = text.replacing(
      "<key>rules2</key>\n\t<dict>", with: "<key>rules2</key>\n\t<dict>\n\t\t<key>^secret</key>\n\t\t<false/>"
    )
    try TestBundle.write(Array(weak.utf8), to: path)
    #expect(
      try bundle.findingsOfSeal().map { "\($0.kind) \($0.path)" } == [
        "weakRules _CodeSignature/CodeResources"
      ])
  }

  @Test func sealsComeBackAsTheyWereWritten() throws {
    let bundle = try TestBundle(.contents)
    try TestBundle.makeSmall(at: bundle.base + "/PlugIns/B.appex", .flat, "org.example.plugin")
    let seal = try TestBundle.open(bundle.path).seal { _ throws(Finding) in
      NestedSeal(cdhash: [UInt8](repeating: 7, count: 20), requirement: "identifier \"a&b\"")
    }
    let bytes = try seal.codeResources()
    let again = try ResourceSeal(reading: bytes)
    #expect(again == seal)
    #expect(try again.codeResources() == bytes)
  }
}

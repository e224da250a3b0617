// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Policy
internal import Bundles
internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What directories `X.localized` are called, as Foundation says it.
@Suite struct FoundationNameTests {
  /// On Linux, Foundation knows no other language.
  private static let language = "en-001"

  @Test func namesAreThoseOfFoundation() throws {
    try #require(Locale.preferredLanguages == [Self.language])
    let temporary = try TemporaryDirectory()
    let root = try temporary.open()
    let names = DisplayNames(Languages(names: [Self.language]), catalog: { _ in nil })
    var random = SeededRandom(seed: 20)
    var localized = 0
    for number in 0..<10_000 {
      let name = Self.stems.pick(&random) + Self.endings.pick(&random)
      if name == "." || name == ".." { continue }
      try Self.makeTree(temporary.path, name, &random)
      let path = temporary.appending(name)
      let directory = try name.withName { (name) throws(Errno) in try root.fd.child(name) }
      let ours = names.name(
        of: DisplayNames.Named(
          name, FinderInfo(), isDocument: false, hidesExtension: false,
          contents: DirectoryContents(of: directory.fd)))
      let theirs = FileManager.default.displayName(atPath: path)
      #expect(ours.utf8.elementsEqual(theirs.utf8), "\(number): \(name.debugDescription) \(ours) \(theirs)")
      if ours != name { localized += 1 }
      try name.withName { (name) throws(Errno) in try root.fd.removeTree(name) }
    }
    // Many of them have another name than on disk.
    #expect(localized > 3_000)
  }

  private static let stems = ["A", "Ärger", "a b", "x.y", "日本", "..", ".", "-", "A:B", "e\u{301}", "😀", "a."]
  private static let endings = [
    ".localized", ".localized", ".localized", ".localized", ".localized", ".LOCALIZED", ".localised", "",
    ".localized.x",
  ]
  /// None is empty: Foundation shows nothing then, and we the name on disk.
  private static let texts = ["Zed", "Zwei \"Worte\"", "後", "😀\n", "a\\b", "/x/", "\u{202e}abc", "'q'"]

  private static func makeTree(_ root: String, _ name: String, _ random: inout SeededRandom) throws {
    let inner = "\(root)/\(name)/.localized"
    let kind = Int.random(in: 0..<20, using: &random)
    try FileManager.default.createDirectory(
      atPath: kind == 0 ? "\(root)/\(name)" : inner, withIntermediateDirectories: true)
    if kind == 1 {
      try FileManager.default.removeItem(atPath: inner)
      try Data().write(to: URL(fileURLWithPath: inner))
    }
    guard kind > 1 else { return }
    var stem = name
    if let end = name.range(of: ".localized", options: .backwards) { stem = String(name[..<end.lowerBound]) }
    for language in [Self.language, "de"] where Int.random(in: 0..<8, using: &random) > 0 {
      let bytes = try table(stem, &random)
      try bytes.write(to: URL(fileURLWithPath: "\(inner)/\(language).strings"))
    }
  }

  /// A table in one of the forms that there are, or something that is none.
  private static func table(_ stem: String, _ random: inout SeededRandom) throws -> Data {
    var entries: [String: Any] = [:]
    if Int.random(in: 0..<6, using: &random) > 0 { entries[stem] = texts.pick(&random) }
    if Bool.random(using: &random) { entries["Other"] = "other" }
    if Int.random(in: 0..<12, using: &random) == 0 { entries[stem] = ["no text"] }
    switch Int.random(in: 0..<8, using: &random) {
    case 0: return try PropertyListSerialization.data(fromPropertyList: entries, format: .xml, options: 0)
    case 1: return try PropertyListSerialization.data(fromPropertyList: entries, format: .binary, options: 0)
    case 2: return Data(["A", "", " ", "#A=b;", "A = x", "(a)", "\"A\" = \"x"].pick(&random).utf8)
    default: break
    }
    var text = ""
    for (key, value) in entries.sorted(by: { $0.key < $1.key }) {
      let value = (value as? String).map(quoted) ?? "( \"no text\" )"
      text += ["", "/* comment */\n", "// comment\n"].pick(&random)
      text += "\(quoted(key)) = \(value);\n"
    }
    if Bool.random(using: &random) { text = "{\n\(text)}\n" }
    let (mark, encoding) = forms.pick(&random)
    return Data(mark) + (text.data(using: encoding) ?? Data())
  }

  private static let forms: [([UInt8], String.Encoding)] = [
    ([], .utf8), ([0xef, 0xbb, 0xbf], .utf8), ([0xff, 0xfe], .utf16LittleEndian),
    ([0xfe, 0xff], .utf16BigEndian),
  ]

  private static func quoted(_ text: String) -> String {
    let escaped = text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
    return "\"\(escaped.replacing("\n", with: "\\n"))\""
  }
}

extension Array {
  fileprivate func pick(_ random: inout SeededRandom) -> Element {
    self[Int.random(in: indices, using: &random)]
  }
}

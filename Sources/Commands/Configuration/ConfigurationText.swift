// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

/// What a configuration file says, line by line: `[section]`, `key = value` below it, `#` before a comment.
///
/// A line that makes no sense is a problem, and the lines after it are read all the same.
struct ConfigurationText {
  /// A key that is set.
  struct Entry {
    let key: ConfigurationKey
    let value: String
    let line: Int
  }

  /// What is wrong with a line; without a number it is the file itself.
  struct Problem: Equatable {
    var line: Int?
    let message: String
  }

  private(set) var entries: [Entry] = []
  private(set) var problems: [Problem] = []
  private let isMachines: Bool
  private var section = Place.before

  /// Under which heading the lines are.
  private enum Place {
    case before
    case unknown
    case section(ConfigurationKey.Section)
  }

  static let sizeLimit = 64 << 10
  static let lineLimit = 4096

  /// Reads a whole file; only the machine's may have what root decides for all.
  init(_ bytes: [UInt8], isMachines: Bool) {
    self.isMachines = isMachines
    guard bytes.count <= Self.sizeLimit else {
      problems = [Problem(message: "is longer than \(Self.sizeLimit) bytes; shorten it")]
      return
    }
    let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    for (index, line) in lines.enumerated() { read(line, index + 1) }
  }

  /// A file that does not count as a whole.
  init(unusable why: String) {
    isMachines = false
    problems = [Problem(message: why)]
  }

  private mutating func read(_ bytes: ArraySlice<UInt8>, _ number: Int) {
    func refuse(_ message: String) { problems.append(Problem(line: number, message: message)) }
    guard bytes.count <= Self.lineLimit else {
      return refuse("the line is longer than \(Self.lineLimit) bytes")
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      return refuse("the line is not UTF-8; save the file as UTF-8")
    }
    if text.utf8.last == 0x0d {
      return refuse("the line ends in a carriage return; save the file with the line ends of Unix")
    }
    guard text.unicodeScalars.allSatisfy({ $0 == "\t" || $0.isPrintable }) else {
      return refuse("the line has a character that can't be shown ('\(text.sanitized)'); remove it")
    }
    let line = Self.trimmed(text[...])
    if line.isEmpty || line.hasPrefix("#") { return }
    if line.hasPrefix(";") { return refuse("comments begin with '#', not with ';'") }
    if line.hasPrefix("[") { return begin(line, number) }
    guard let equals = line.utf8.firstIndex(of: UInt8(ascii: "=")) else {
      return refuse("'\(line)' is neither a '[section]' nor 'key = value' nor a comment ('# ...')")
    }
    let key = String(Self.trimmed(line[..<equals]))
    set(key, String(Self.trimmed(line[line.utf8.index(after: equals)...])), number)
  }

  private mutating func begin(_ line: Substring, _ number: Int) {
    section = .unknown
    guard line.hasSuffix("]") else {
      problems.append(Problem(line: number, message: "'\(line)' does not end in ']'"))
      return
    }
    let name = String(Self.trimmed(line.dropFirst().dropLast()))
    guard let known = ConfigurationKey.Section(rawValue: name) else {
      let all = ConfigurationKey.Section.allCases.map(\.rawValue)
      let message =
        "there is no section '\(name)'\(Suggestion.text(for: name, among: all)); known are "
        + all.map { "[\($0)]" }.joined(separator: ", ")
      problems.append(Problem(line: number, message: message))
      return
    }
    section = .section(known)
  }

  private mutating func set(_ name: String, _ written: String, _ number: Int) {
    func refuse(_ message: String) { problems.append(Problem(line: number, message: message)) }
    let place: ConfigurationKey.Section
    switch section {
    case .unknown: return
    case .before: return refuse("'\(name)' is in no section; \(Self.place(of: name))")
    case .section(let section): place = section
    }
    guard let key = ConfigurationKey.all.first(where: { $0.section == place && $0.name == name }) else {
      return refuse(Self.unknown(name, in: place))
    }
    if place.isMachinesAlone && !isMachines {
      return refuse("'\(name)' of [\(place.rawValue)] counts in the machine's file alone; remove it here")
    }
    if let before = entries.first(where: { $0.key.path == key.path }) {
      return refuse("'\(name)' is set already in line \(before.line); keep one of the two")
    }
    guard let value = Self.unquoted(written) else {
      return refuse(
        "a comment needs a line of its own; if '#' is part of the value, put that between double quotes")
    }
    if let why = key.kind.refusal(of: value) { return refuse("\(name): \(why)") }
    entries.append(Entry(key: key, value: value, line: number))
  }

  /// Says what a key that is not known might be.
  private static func unknown(_ name: String, in section: ConfigurationKey.Section) -> String {
    let here = ConfigurationKey.all.filter { $0.section == section }.map(\.name)
    let start = "[\(section.rawValue)] has no key '\(name)'"
    let suggestion = Suggestion.text(for: name, among: here)
    if suggestion.isEmpty, ConfigurationKey.all.contains(where: { $0.name == name }) {
      return "\(start); \(place(of: name))"
    }
    return "\(start)\(suggestion); known are \(here.joined(separator: ", "))"
  }

  private static func place(of name: String) -> String {
    let places = ConfigurationKey.all.filter { $0.name == name }.map { "[\($0.section.rawValue)]" }
    return places.isEmpty
      ? "write a '[section]' above it" : "it belongs below \(places.joined(separator: " or "))"
  }

  /// The value without the quotes around it; nil where a comment seems to follow it.
  private static func unquoted(_ text: String) -> String? {
    if text.count >= 2, text.hasPrefix("\""), text.hasSuffix("\"") {
      let inner = text.dropFirst().dropLast()
      if !inner.utf8.contains(UInt8(ascii: "\"")) { return String(inner) }
    }
    return text.includes(" #") || text.includes("\t#") ? nil : text
  }

  private static func trimmed(_ text: Substring) -> Substring {
    var text = text.drop { $0 == " " || $0 == "\t" }
    while text.last == " " || text.last == "\t" { text.removeLast() }
    return text
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import JSON
internal import LinuxIO
internal import PropertyLists

/// A value as it is typed: a word that says its type, and the value's own words.
enum PreferenceValue {
  /// What a value does to the one that is there.
  enum Change {
    case replace(PropertyList)
    /// Behind what is in the array.
    case append([PropertyList])
    /// To what is in the dictionary.
    case merge([(key: String, value: PropertyList)])
  }

  /// The words for types of one value.
  private static let scalars = [
    "-string", "-int", "-integer", "-float", "-bool", "-boolean", "-date", "-data",
  ]
  private static let collections = ["-array", "-array-add", "-dict", "-dict-add"]
  /// All of them, which are no options.
  static let words = scalars + collections

  /// Why words are no value.
  struct Problem: Error { let message: String }

  /// Understands the words behind a key.
  static func change(_ words: [String]) throws(Problem) -> Change {
    var rest = words[...]
    guard let first = rest.first else { throw Problem(message: "VALUE is missing") }
    switch first {
    case "-array", "-array-add":
      rest.removeFirst()
      var values: [PropertyList] = []
      while !rest.isEmpty { values.append(try value(&rest)) }
      return first == "-array" ? .replace(.array(values)) : .append(values)
    case "-dict", "-dict-add":
      rest.removeFirst()
      var entries: [(key: String, value: PropertyList)] = []
      while let key = rest.popFirst() {
        guard !rest.isEmpty else { throw Problem(message: "the key '\(key)' has no value") }
        entries.append((key, try value(&rest)))
      }
      return first == "-dict" ? .replace(PropertyList(entries: entries)) : .merge(entries)
    default:
      let value = try value(&rest)
      guard rest.isEmpty else {
        throw Problem(message: "more than one value; quote a value with blanks, or write -array or -dict")
      }
      return .replace(value)
    }
  }

  /// One value, with the word for its type in front or as a string.
  private static func value(_ words: inout ArraySlice<String>) throws(Problem) -> PropertyList {
    let first = words.popFirst() ?? ""
    guard !collections.contains(first) else {
      throw Problem(message: "'\(first)' can't be among the values of another one")
    }
    guard scalars.contains(first) else { return .string(first) }
    guard let text = words.popFirst() else { throw Problem(message: "'\(first)' requires a value") }
    let found: (value: PropertyList?, form: String) =
      switch first {
      case "-string": (.string(text), "")
      case "-int", "-integer":
        (Int64(text).map { .integer($0) } ?? UInt64(text).map { .unsigned($0) }, "a whole number")
      case "-float": (Double(text).map { .real($0) }, "a number")
      case "-bool", "-boolean": (bool(text).map { .boolean($0) }, "true or false")
      case "-date": (date(text), "a date such as '2026-01-31 23:59:59 +0000' or 2026-01-31T23:59:59Z")
      default: (data(text).map { .data($0) }, "an even number of hexadecimal digits")
      }
    guard let value = found.value else { throw Problem(message: "'\(text)' is not \(found.form)") }
    return value
  }

  private static func bool(_ text: String) -> Bool? {
    switch text.lowercased() {
    case "true", "yes", "1": true
    case "false", "no", "0": false
    default: nil
    }
  }

  private static func date(_ text: String) -> PropertyList? {
    var bytes = Array(text.utf8)
    if text.hasSuffix(" +0000") { bytes = bytes.dropLast(6) + [UInt8(ascii: "Z")] }
    if bytes.count == 20, bytes[10] == UInt8(ascii: " ") { bytes[10] = UInt8(ascii: "T") }
    return PropertyList(date: bytes)
  }

  private static func data(_ text: String) -> [UInt8]? {
    let digits = text.utf8.compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
    guard digits.count == text.utf8.count, digits.count % 2 == 0 else { return nil }
    return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
  }
}

extension JSONValue {
  /// A property list for programs: dates and data as the text that XML has for them.
  init(_ list: PropertyList) {
    self =
      switch list {
      case .dictionary(let dictionary):
        .object(Dictionary(dictionary.entries.map { ($0.key, JSONValue($0.value)) }) { $1 })
      case .array(let values): .array(values.map { JSONValue($0) })
      case .string(let text): .string(text)
      case .integer(let number): .integer(number)
      case .unsigned(let number), .uid(let number):
        Int64(exactly: number).map { .integer($0) } ?? .unsigned(number)
      case .real(let number): JSONValue(number) ?? .null
      case .boolean(let isTrue): .bool(isTrue)
      case .date, .data: .string(list.encodedText)
      }
  }
}

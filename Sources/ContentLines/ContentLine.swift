// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// One property of a vCard or iCalendar file, as RFC 5545, RFC 6350 and vCard 2.1 write it.
///
/// Whoever wrote the file may be anybody: what makes no sense is left out, and everything has a limit.
package struct ContentLine: Equatable, Sendable {
  package struct Parameter: Equatable, Sendable {
    /// In capital letters.
    package let name: String
    package let values: [String]
  }

  /// In capital letters, without the group before it.
  package let name: String
  package let parameters: [Parameter]
  /// As it stands there, with its escapes.
  let value: [UInt8]

  static let mostParameters = 32
  private static let longestName = 64
  private static let longestParameter = 256

  /// Nil if that is no property.
  package init?(_ line: [UInt8]) {
    var rest = line[...]
    let word = rest.prefix { !Self.endsName($0) }
    rest = rest.dropFirst(word.count)
    // The group of a name ends with its last dot.
    let ownName = word.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).last ?? []
    guard !ownName.isEmpty, ownName.count <= Self.longestName, ownName.allSatisfy(Self.isInNames) else {
      return nil
    }
    name = String(decoding: ownName, as: UTF8.self).uppercased()
    var parameters: [Parameter] = []
    while rest.first == UInt8(ascii: ";") {
      rest = rest.dropFirst()
      let parameter = Self.takeParameter(&rest)
      if parameters.count < Self.mostParameters { parameters.append(parameter) }
    }
    guard rest.first == UInt8(ascii: ":") else { return nil }
    value = Array(rest.dropFirst())
    self.parameters = parameters
  }

  /// The values of a parameter, of all that have this name.
  package func values(of parameter: String) -> [String] {
    parameters.filter { $0.name == parameter }.flatMap(\.values)
  }

  func has(_ parameter: String, _ value: String) -> Bool {
    values(of: parameter).contains { $0.uppercased() == value }
  }

  /// Whether a line whose value begins after this many bytes goes on in the next one if it ends with an
  /// equals sign, as in vCard 2.1.
  static func isQuotedPrintable(_ line: ArraySlice<UInt8>) -> Bool {
    let head = line.prefix { $0 != UInt8(ascii: ":") }
    guard head.count < line.count, head.count <= 4096 else { return false }
    let words = head.split { $0 == UInt8(ascii: ";") || $0 == UInt8(ascii: "=") }
    return words.dropFirst().contains { $0.count == 16 && $0.isSame(as: "QUOTED-PRINTABLE") }
  }

  private static func takeParameter(_ rest: inout ArraySlice<UInt8>) -> Parameter {
    let word = rest.prefix { !endsName($0) && $0 != UInt8(ascii: "=") }
    rest = rest.dropFirst(word.count)
    let name = String(decoding: word.prefix(longestParameter), as: UTF8.self).uppercased()
    guard rest.first == UInt8(ascii: "=") else {
      // vCard 2.1 leaves out what such a word says.
      let isEncoding = name == "QUOTED-PRINTABLE" || name == "BASE64"
      return Parameter(name: isEncoding ? "ENCODING" : "TYPE", values: [name])
    }
    var values: [String] = []
    repeat {
      rest = rest.dropFirst()
      let value = takeParameterValue(&rest)
      if values.count < mostParameters { values.append(value) }
    } while rest.first == UInt8(ascii: ",")
    return Parameter(name: name, values: values)
  }

  private static func takeParameterValue(_ rest: inout ArraySlice<UInt8>) -> String {
    var value: [UInt8] = []
    var isQuoted = false
    while let byte = rest.first {
      if byte == UInt8(ascii: "\"") {
        isQuoted.toggle()
      } else if !isQuoted, endsName(byte) || byte == UInt8(ascii: ",") {
        break
      } else if value.count < longestParameter {
        value.append(byte)
      }
      rest = rest.dropFirst()
    }
    return withoutCarets(String(decoding: value, as: UTF8.self))
  }

  /// RFC 6868: how parameters have line ends and quotes.
  private static func withoutCarets(_ text: String) -> String {
    guard text.utf8.contains(UInt8(ascii: "^")) else { return text }
    var result = String.UnicodeScalarView()
    var isEscaped = false
    for scalar in text.unicodeScalars {
      switch (isEscaped, scalar) {
      case (false, "^"): isEscaped = true
      case (false, _): result.append(scalar)
      case (true, _):
        isEscaped = false
        switch scalar {
        case "n": result.append("\n")
        case "'": result.append("\"")
        case "^": result.append("^")
        default:
          result.append("^")
          result.append(scalar)
        }
      }
    }
    if isEscaped { result.append("^") }
    return String(result)
  }

  private static func endsName(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: ";") || byte == UInt8(ascii: ":")
  }

  private static func isInNames(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
      true
    default: false
    }
  }
}

extension ArraySlice<UInt8> {
  /// Whether it is this word, in letters of any case.
  func isSame(as word: String) -> Bool {
    count == word.utf8.count
      && zip(self, word.utf8).allSatisfy { byte, letter in
        byte == letter || byte >= 0x61 && byte <= 0x7a && byte & 0xdf == letter
      }
  }
}

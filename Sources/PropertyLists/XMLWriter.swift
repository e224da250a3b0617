// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension PropertyList {
  /// The list as XML in Apple's layout: a tab for each level, data in lines, keys in their order.
  ///
  /// Throws for what XML can't hold: control characters, dates of other ages, nesting that no reader would
  /// follow.
  package func xml() throws(PropertyListError) -> [UInt8] {
    var writer = XMLWriter()
    writer.line("<?xml version=\"1.0\" encoding=\"UTF-8\"?>", 0)
    writer.line(
      "<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" "
        + "\"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">", 0)
    writer.line("<plist version=\"1.0\">", 0)
    try writer.write(self, level: 0)
    writer.line("</plist>", 0)
    return writer.bytes
  }
}

private struct XMLWriter {
  var bytes: [UInt8] = []

  mutating func line(_ text: String, _ level: Int) {
    indent(level)
    bytes += text.utf8
    bytes.append(0x0a)
  }

  private mutating func indent(_ level: Int) {
    for _ in 0..<level { bytes.append(0x09) }
  }

  mutating func write(_ value: PropertyList, level: Int) throws(PropertyListError) {
    guard level < PropertyList.depthLimit || !value.isContainer else {
      throw PropertyListError("nested too deeply")
    }
    switch value {
    case .dictionary(let dictionary): try write(dictionary, level: level)
    case .array(let values):
      guard !values.isEmpty else { return line("<array/>", level) }
      line("<array>", level)
      for value in values { try write(value, level: level + 1) }
      line("</array>", level)
    case .string(let text): try element("string", text, level)
    case .data(let data): write(data, level: level)
    case .integer(let number): line("<integer>\(number)</integer>", level)
    case .unsigned(let number): line("<integer>\(number)</integer>", level)
    case .real(let number): line("<real>\(Self.text(number))</real>", level)
    case .boolean(let isTrue): line(isTrue ? "<true/>" : "<false/>", level)
    case .date(let seconds):
      guard let text = PropertyListDate.text(seconds) else {
        throw PropertyListError("a date that XML can't represent")
      }
      line("<date>\(text)</date>", level)
    case .uid(let number):
      line("<dict>", level)
      line("<key>\(PropertyList.uidKey)</key>", level + 1)
      line("<integer>\(number)</integer>", level + 1)
      line("</dict>", level)
    }
  }

  private mutating func write(_ dictionary: PropertyList.Dictionary, level: Int) throws(PropertyListError) {
    guard !dictionary.entries.isEmpty else { return line("<dict/>", level) }
    line("<dict>", level)
    for (key, value) in dictionary.entries {
      try element("key", key, level + 1)
      try write(value, level: level + 1)
    }
    line("</dict>", level)
  }

  /// In lines of 76 columns, of which a tab takes eight.
  private mutating func write(_ data: [UInt8], level: Int) {
    line("<data>", level)
    let length = max(16, 76 - 8 * level) / 4 * 3
    var start = 0
    while start < data.count {
      let end = min(start + length, data.count)
      indent(level)
      Base64.encode(data[start..<end], into: &bytes)
      bytes.append(0x0a)
      start = end
    }
    line("</data>", level)
  }

  private mutating func element(_ name: String, _ text: String, _ level: Int) throws(PropertyListError) {
    indent(level)
    bytes += "<\(name)>".utf8
    for byte in text.utf8 {
      switch byte {
      case 0x26: bytes += "&amp;".utf8
      case 0x3c: bytes += "&lt;".utf8
      case 0x3e: bytes += "&gt;".utf8
      // Other readers take a bare one for a line's end.
      case 0x0d: bytes += "&#13;".utf8
      case 0x09, 0x0a, 0x20...: bytes.append(byte)
      default: throw PropertyListError("a control character, which XML can't represent")
      }
    }
    bytes += "</\(name)>\n".utf8
  }

  private static func text(_ number: Double) -> String {
    if number.isNaN { return "nan" }
    if number.isInfinite { return number < 0 ? "-infinity" : "+infinity" }
    // Whole numbers without a fraction, as Apple's tools write the weights of rules.
    let text = number.description
    return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
  }
}

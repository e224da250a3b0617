// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The target of a link as UTF-8, for a program that keeps no other text right.
package enum LinkText {
  private static let beginning = Array("insula-bytes:".utf8)
  private static let percent = UInt8(ascii: "%")

  /// The text to show for a target: itself if that can't be taken for another one.
  package static func encoded(_ target: [UInt8]) -> [UInt8] {
    if String(validating: target, as: UTF8.self) != nil, !target.starts(with: beginning) { return target }
    return target.reduce(into: beginning) { text, byte in
      guard byte >= 0x80 || byte == percent else { return text.append(byte) }
      text += [percent, digit(byte >> 4), digit(byte & 0xf)]
    }
  }

  /// The target that a text is shown for.
  package static func decoded(_ text: [UInt8]) -> [UInt8] {
    guard text.starts(with: beginning) else { return text }
    var target: [UInt8] = []
    var rest = text.dropFirst(beginning.count)
    while let byte = rest.popFirst() {
      guard byte == percent else {
        target.append(byte)
        continue
      }
      guard let high = rest.popFirst().flatMap(value), let low = rest.popFirst().flatMap(value) else {
        return text
      }
      target.append(high << 4 | low)
    }
    return target.isEmpty || target.contains(0) ? text : target
  }

  private static func digit(_ value: UInt8) -> UInt8 { Array("0123456789abcdef".utf8)[Int(value & 0xf)] }

  private static func value(_ digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    default: nil
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What a person types at a terminal that passes on each letter.
enum ScreenKey: Equatable {
  case letter(Character)
  case up, down, pageUp, pageDown, home, end

  /// Takes the keys out of what was typed; the beginning of one that has not arrived whole stays.
  ///
  /// What is unknown is left out.
  static func take(from typed: inout [UInt8]) -> [ScreenKey] {
    var keys: [ScreenKey] = []
    var rest = typed[...]
    while let first = rest.first {
      guard first == 0x1b else {
        rest = rest.dropFirst()
        if (0x20..<0x7f).contains(first) { keys.append(.letter(Character(Unicode.Scalar(first)))) }
        continue
      }
      // ESC, [ or O, digits and semicolons, and a last one that is neither.
      guard let second = rest.dropFirst().first else { break }
      guard second == UInt8(ascii: "[") || second == UInt8(ascii: "O") else {
        rest = rest.dropFirst()
        continue
      }
      let body = rest.dropFirst(2)
      guard let end = body.firstIndex(where: { (0x40...0x7e).contains($0) }) else {
        // Nobody's key is that long.
        guard body.count > 16 else { break }
        rest = rest.dropFirst(2)
        continue
      }
      if let key = key(String(decoding: body[body.startIndex...end], as: UTF8.self)) { keys.append(key) }
      rest = rest[(end + 1)...]
    }
    typed = Array(rest)
    return keys
  }

  private static func key(_ sequence: String) -> ScreenKey? {
    switch sequence {
    case "A": .up
    case "B": .down
    case "5~": .pageUp
    case "6~": .pageDown
    case "H", "1~", "7~": .home
    case "F", "4~", "8~": .end
    default: nil
    }
  }
}

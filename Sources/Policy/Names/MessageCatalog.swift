// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// A catalog of translated messages, as gettext's `.mo` files are.
package enum MessageCatalog {
  /// How long a catalog may be in bytes.
  package static let sizeLimit = 1 << 20

  /// What the catalog of xdg-user-dirs calls the directories that a home has here; others are not in it.
  package static func message(for folder: String) -> String? {
    switch folder {
    case "Downloads": "Download"
    case "Movies": "Videos"
    case "Desktop", "Documents", "Music", "Pictures", "Public": folder
    default: nil
    }
  }

  /// The translation of a message; nil where there is none, or this is no catalog.
  ///
  /// A header tells how many messages there are and where two tables begin: of the messages, in order, and of
  /// their translations. Each entry is a length and an offset.
  package static func translation(of message: String, in bytes: [UInt8]) -> String? {
    guard let magic = number(bytes, 0, false), bytes.count <= sizeLimit else { return nil }
    let isSwapped = magic == 0xde12_0495
    guard isSwapped || magic == 0x9504_12de, let count = number(bytes, 8, isSwapped),
      let messages = number(bytes, 12, isSwapped), let translations = number(bytes, 16, isSwapped),
      count <= bytes.count / 16
    else { return nil }
    for index in 0..<count {
      guard let text = text(bytes, messages + 8 * index, isSwapped) else { return nil }
      guard text.elementsEqual(message.utf8) else { continue }
      guard let translated = self.text(bytes, translations + 8 * index, isSwapped), !translated.isEmpty else {
        return nil
      }
      return String(validating: translated, as: UTF8.self)
    }
    return nil
  }

  private static func text(_ bytes: [UInt8], _ entry: Int, _ isSwapped: Bool) -> ArraySlice<UInt8>? {
    guard let length = number(bytes, entry, isSwapped), let start = number(bytes, entry + 4, isSwapped),
      length <= bytes.count, start <= bytes.count - length
    else { return nil }
    return bytes[start..<start + length]
  }

  /// Four bytes at a place; nil if they are not there.
  private static func number(_ bytes: [UInt8], _ offset: Int, _ isSwapped: Bool) -> Int? {
    guard offset >= 0, offset <= bytes.count - 4 else { return nil }
    return (0..<4).reduce(0) { $0 << 8 | Int(bytes[offset + (isSwapped ? $1 : 3 - $1)]) }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What tells an app, a group of apps or a container in the cloud from every other: `com.example.editor`.
///
/// It becomes the name of a directory, so nothing may be in it that means something in a path.
package struct AppIdentifier: Hashable, Sendable, CustomStringConvertible {
  package let text: String

  /// As many as Apple's store takes.
  package static let longest = 155

  /// Letters and digits of ASCII, hyphens and dots; it begins with a letter or a digit, and no part between
  /// dots is empty.
  package init?(_ text: String) {
    guard text.utf8.count <= Self.longest, let first = text.utf8.first, Self.isAlphanumeric(first),
      text.utf8.allSatisfy({ Self.isAlphanumeric($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".") }),
      text.split(separator: ".", omittingEmptySubsequences: false).allSatisfy({ !$0.isEmpty })
    else { return nil }
    self.text = text
  }

  package var description: String { text }

  private static func isAlphanumeric(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: false
    }
  }
}

extension AppIdentifier: Codable {
  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let identifier = AppIdentifier(try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "not an app's identifier")
    }
    self = identifier
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }
}

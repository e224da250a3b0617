// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The names that an app's bundle can have in the tree.
enum BundleName {
  static let suffix = ".app"

  /// Throws what is wrong with a name.
  static func check(_ name: String) throws(AppFailure) {
    let reason: String? =
      if !name.hasSuffix(suffix) || name.utf8.count <= suffix.utf8.count {
        "it does not end in .app"
      } else if name.hasPrefix(".") {
        "it begins with a dot"
      } else if name.utf8.contains(UInt8(ascii: "/")) {
        "it contains a slash"
      } else if name.unicodeScalars.contains(where: { $0.value < 0x20 || (0x7f...0x9f).contains($0.value) }) {
        "it contains a control character"
      } else if name.unicodeScalars.contains("\u{fffd}") {
        "it is not valid UTF-8"
      } else if name.utf8.count > 255 {
        "it is longer than 255 bytes"
      } else {
        nil
      }
    if let reason { throw .badName(name: name, reason: reason) }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

/// The names that an app's bundle can have in the tree.
///
/// They are not signed: whoever passes a bundle on may have chosen its name.
enum BundleName {
  static let suffix = ".app"

  /// Throws what is wrong with a name.
  static func check(_ name: String) throws(AppFailure) {
    let reason: String? =
      if !name.hasSuffix(suffix) || name.utf8.count <= suffix.utf8.count {
        "it does not end in .app"
      } else if name.begins(with: ".") {
        "it begins with a dot"
      } else if name.begins(with: "-") {
        "it begins with a hyphen, as options of commands do"
      } else if name.utf8.contains(UInt8(ascii: "/")) {
        "it contains a slash"
      } else if name.unicodeScalars.contains(where: \.isControl) {
        "it contains a control character"
      } else if name.unicodeScalars.contains("\u{fffd}") {
        "it is not valid UTF-8"
      } else if !name.unicodeScalars.allSatisfy(\.isPrintable) {
        "it contains a character that is not shown, or changes how others are shown"
      } else if !standsAlone(name) {
        "it begins or ends with a character that joins what is beside it"
      } else if name.utf8.count > 255 {
        "it is longer than 255 bytes"
      } else {
        nil
      }
    if let reason { throw .badName(name: name, reason: reason) }
  }

  /// Whether a name stays the same name between two slashes: programs that read a path character by
  /// character take a slash and a combining mark for one character.
  private static func standsAlone(_ name: String) -> Bool {
    let path = "/\(name)/"
    return path.first == "/" && path.last == "/"
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The rules by which what a person is shown differs from the name on disk.
///
/// The name on disk never changes, and what is shown is never a path.
package enum DisplayName {
  /// The directory in an `X.localized` that has the tables, and the file by which a standard directory asks
  /// to be called by what it is called in a person's language.
  package static let marker = ".localized"

  /// The `X` of `X.localized`; nil for other names.
  package static func localizedStem(of name: String) -> String? {
    let parts = split(name)
    return parts.ending == "localized" ? parts.stem : nil
  }

  /// A name without its extension, and the extension, if it has one.
  ///
  /// That begins after the last period and is not empty, and something other than periods is before it.
  package static func split(_ name: String) -> (stem: String, ending: String?) {
    guard let period = name.utf8.lastIndex(of: UInt8(ascii: ".")),
      name.utf8[..<period].contains(where: { $0 != UInt8(ascii: ".") })
    else { return (name, nil) }
    let ending = name[name.utf8.index(after: period)...]
    return ending.isEmpty ? (name, nil) : (String(name[..<period]), String(ending))
  }

  /// A name as it is shown where extensions are hidden: what only looks like one stays.
  package static func withoutKnownExtension(_ name: String) -> String {
    let (stem, ending) = split(name)
    guard let ending, looksLikeType(ending) else { return name }
    return stem
  }

  /// Whether an extension may say what kind a file is of: `v1.2` has no such, nor has `Mr. Smith`.
  private static func looksLikeType(_ ending: String) -> Bool {
    ending.utf8.count <= 12
      && ending.utf8.allSatisfy { byte in
        UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte || isLetter(byte) || byte == UInt8(ascii: "-")
      }
      && ending.utf8.contains(where: isLetter)
  }

  private static func isLetter(_ byte: UInt8) -> Bool {
    UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte | 0x20
  }

  /// Whether a person should not see something: what Finder does not show.
  ///
  /// Programs always see it.
  package static func isHidden(_ name: some Collection<UInt8>, _ flags: FileFlags, _ info: FinderInfo) -> Bool
  {
    name.first == UInt8(ascii: ".") || flags.contains(.hidden) || info[.isInvisible]
  }
}

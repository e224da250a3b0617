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
    guard let ending = split(name).ending, looksLikeType(ending) else { return name }
    return withoutExtension(name)
  }

  /// A name as it is shown without its extension: whole, if what remains would pass for something else.
  ///
  /// `photo.jpg.command` is a program, and is not to be shown as a picture.
  package static func withoutExtension(_ name: String) -> String {
    let stem = split(name).stem
    return isReadable(stem) && !looksLikeDocument(stem) ? stem : name
  }

  /// Whether a text ends in an extension that everybody knows.
  ///
  /// What nobody sees hides none.
  package static func looksLikeDocument(_ text: String) -> Bool {
    let seen = String(String.UnicodeScalarView(text.unicodeScalars.filter { !$0.isBlank }))
    guard let ending = NameExtension.of(seen) else { return false }
    return [true, false].contains { TypeTable.base.type(forExtension: ending, isFolder: $0) != nil }
  }

  /// How many marks a letter may have above, below and over it; languages have up to three.
  private static let mostMarks = 4

  /// Whether a person can see what it says: not blanks alone, nor letters below heaps of marks.
  package static func isReadable(_ text: String) -> Bool {
    var (hasLetters, marks) = (false, 0)
    for scalar in text.unicodeScalars {
      switch scalar.properties.generalCategory {
      case .nonspacingMark, .spacingMark, .enclosingMark: marks += 1
      default:
        guard !scalar.isBlank else { continue }
        (hasLetters, marks) = (true, 0)
      }
      if marks > mostMarks { return false }
    }
    return hasLetters
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

extension Unicode.Scalar {
  /// Whether nothing is to be seen of it; the pattern of Braille without dots is no blank to Unicode.
  fileprivate var isBlank: Bool {
    properties.isWhitespace || properties.isDefaultIgnorableCodePoint || self == "\u{2800}"
  }
}

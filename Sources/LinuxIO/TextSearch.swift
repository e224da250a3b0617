// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// The methods of Swift's own for these bring its regular expressions into the program, which are larger than
// most of our modules.

extension String {
  /// Whether a text occurs in it, byte for byte.
  package func includes(_ text: String) -> Bool {
    var rest = utf8[...]
    while !rest.starts(with: text.utf8) {
      if rest.popFirst() == nil { return false }
    }
    return true
  }

  /// The text with another one in the place of each occurrence of a character of ASCII.
  package func replacing(each character: Unicode.Scalar, by text: String) -> String {
    // By code points: what is combined with the character does not protect it.
    var result = String.UnicodeScalarView()
    for scalar in unicodeScalars {
      if scalar == character { result += text.unicodeScalars } else { result.append(scalar) }
    }
    return String(result)
  }
}

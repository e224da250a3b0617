// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension String {
  /// The text as people may see it on one line of a terminal: what a terminal would obey is a question mark.
  ///
  /// Names in a bundle, of files and of processes are a stranger's. Line ends and tabs would forge a table,
  /// other controls give orders to the terminal, and marks of writing direction show something else than
  /// there is. What was no text is marked too.
  package var harmless: String {
    if utf8.allSatisfy({ (0x20...0x7e).contains($0) }) { return self }
    var text = UnicodeScalarView()
    for scalar in unicodeScalars { text.append(scalar.isHarmless ? scalar : "?") }
    return String(text)
  }
}

extension Unicode.Scalar {
  /// Whether a terminal only shows it.
  package var isHarmless: Bool {
    switch properties.generalCategory {
    // What joins letters and what keeps them apart: several scripts can't do without.
    case .format: self == "\u{200c}" || self == "\u{200d}"
    case .control, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: false
    // Stands for bytes that are no text.
    default: self != "\u{fffd}"
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension String {
  /// The text as people may see it on one line of a terminal: what a terminal would obey is a question mark.
  ///
  /// Names in a bundle, and of files, are a stranger's. Line ends and tabs would forge a table, other controls give orders to the
  /// terminal, and marks of writing direction show something else than there is.
  package var harmless: String {
    var text = UnicodeScalarView()
    for scalar in unicodeScalars {
      switch scalar.properties.generalCategory {
      // What joins letters and what keeps them apart: several scripts can't do without.
      case .format where scalar == "\u{200c}" || scalar == "\u{200d}": text.append(scalar)
      case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned:
        text.append("?")
      default: text.append(scalar)
      }
    }
    return String(text)
  }
}

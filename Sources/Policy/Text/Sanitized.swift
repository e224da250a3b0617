// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension String {
  /// The text as it may be shown on one line of a terminal.
  ///
  /// Characters that would control the terminal become question marks.
  ///
  /// Names in bundles, of files and of processes are untrusted. Line ends and tabs could forge a table, other
  /// control characters control the terminal, and marks of writing direction disguise the text. Bytes that
  /// are not text are replaced too.
  package var sanitized: String {
    if utf8.allSatisfy({ (0x20...0x7e).contains($0) }) { return self }
    var text = UnicodeScalarView()
    for scalar in unicodeScalars { text.append(scalar.isPrintable ? scalar : "?") }
    return String(text)
  }

  /// Its beginning, of so many scalars at most.
  ///
  /// A letter may have any number of marks above and below it, so letters say nothing about room.
  package func beginning(_ scalars: Int) -> String {
    String(UnicodeScalarView(unicodeScalars.prefix(scalars)))
  }
}

extension Unicode.Scalar {
  /// Whether it ends a line, or commands a terminal.
  package var isControl: Bool { value < 0x20 || (0x7f...0x9f).contains(value) }

  /// Whether a terminal only shows it.
  package var isPrintable: Bool {
    switch properties.generalCategory {
    // What joins letters and what keeps them apart: several scripts can't do without.
    case .format: self == "\u{200c}" || self == "\u{200d}"
    case .control, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: false
    // Stands for bytes that are no text.
    default: self != "\u{fffd}"
    }
  }
}

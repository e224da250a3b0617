// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension String {
  /// The text as people may see it on one line of a terminal: what a terminal would obey is a question mark.
  ///
  /// Names and versions of apps are a stranger's. Line ends and tabs would forge a table, other controls give orders to the
  /// terminal, and marks of writing direction show something else than there is.
  package var asOneLine: String {
    String(
      String.UnicodeScalarView(
        unicodeScalars.map {
          $0.value < 0x20 || (0x7f...0x9f).contains($0.value) || (0x2028...0x202e).contains($0.value)
            || (0x2066...0x2069).contains($0.value) ? "?" : $0
        }))
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension String {
  /// Without what a terminal would obey: names in a bundle, and of files, are a stranger's.
  package var harmless: String {
    var text = UnicodeScalarView()
    for scalar in unicodeScalars {
      switch scalar.properties.generalCategory {
      case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned:
        text.append("?")
      default: text.append(scalar)
      }
    }
    return String(text)
  }
}

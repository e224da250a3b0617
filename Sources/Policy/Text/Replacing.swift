// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension String {
  /// The text with another character in the place of one, also where a combining mark follows it.
  package func replacing(_ old: Unicode.Scalar, by new: Unicode.Scalar) -> String {
    var replaced = String.UnicodeScalarView()
    for scalar in unicodeScalars { replaced.append(scalar == old ? new : scalar) }
    return String(replaced)
  }
}

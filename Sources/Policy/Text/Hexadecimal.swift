// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension Sequence<UInt8> {
  /// Digits for people, two for each byte.
  package var asHexadecimal: String { map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
}

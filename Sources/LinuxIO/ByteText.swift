// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// Texts as the kernel, and all other programs, understand them: byte by byte. Swift takes a slash, and a
// combining mark that follows it, for one character, which is no slash. Whoever splits or compares paths so
// takes the path of two names for one name, or a path in a directory for one that is not in it.

extension StringProtocol {
  /// The parts between separators, at most `max` of which count; parts that are empty are left out.
  package func parts(
    between separator: Unicode.Scalar, max: Int = .max, keepingEmpty: Bool = false
  ) -> [Substring] {
    Substring(self).utf8.split(
      separator: UInt8(ascii: separator), maxSplits: max, omittingEmptySubsequences: !keepingEmpty
    ).map { Substring($0) }
  }

  /// Whether these bytes come first.
  package func begins(with bytes: some StringProtocol) -> Bool { utf8.starts(with: bytes.utf8) }

  /// Whether these bytes come last.
  package func ends(with bytes: some StringProtocol) -> Bool {
    utf8.reversed().starts(with: bytes.utf8.reversed())
  }
}

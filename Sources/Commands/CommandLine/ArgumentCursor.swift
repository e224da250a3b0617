// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Walks along the words of a command line.
struct ArgumentCursor {
  private var rest: ArraySlice<String>

  init(_ words: some Sequence<String>) { rest = Array(words)[...] }

  /// Takes the next word; nil at the end.
  mutating func next() -> String? { rest.popFirst() }
}

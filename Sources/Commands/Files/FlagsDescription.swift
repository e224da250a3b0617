// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

/// Flags for programs.
struct FlagsDescription: Encodable {
  let file: String
  let flags: [String]
}

extension FileFlags {
  /// The words one by one.
  var wordList: [String] { words.split(separator: ",").map(String.init) }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

/// Flags for programs.
struct FlagsDescription: Encodable {
  let file: String
  let flags: [String]
}

extension FileFlags {
  /// The words one by one.
  var wordList: [String] { words.parts(between: ",").map(String.init) }
}

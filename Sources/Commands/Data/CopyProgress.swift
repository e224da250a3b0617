// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps

/// How far a copy of data is, for whoever looks at a terminal.
enum CopyProgress {
  /// Copies data, and shows meanwhile how far that is.
  static func show<Result>(
    _ words: String, _ console: Console,
    _ body: (@escaping @Sendable (TreeCopy.Count) -> Void) throws -> Result
  ) rethrows -> Result {
    try ProgressLine.show(
      console,
      { (last: TreeCopy.Count?) in
        let count = last.map { "\($0.files) files, \(Int(clamping: $0.bytes).asSize)" }
        return "\(words): \(count ?? "examining")"
      }, while: body)
  }
}

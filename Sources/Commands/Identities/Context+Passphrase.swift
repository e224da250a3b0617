// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension Context {
  /// The passphrase that is the first line of a file.
  func passphrase(_ path: String) throws -> String {
    let bytes = try contents(of: path, limit: 4096)
    let line = bytes.prefix { $0 != 10 && $0 != 13 }
    guard !line.isEmpty, let text = String(validating: line, as: UTF8.self) else {
      throw CommandFailure(
        .failed, "the first line of \(path) is not a passphrase: it is empty, or not UTF-8")
    }
    return text
  }
}

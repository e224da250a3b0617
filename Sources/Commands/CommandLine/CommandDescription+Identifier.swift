// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

extension CommandDescription {
  /// An app that a person named.
  func app(_ text: String?) throws(UsageError) -> AppReference {
    guard let text, let app = AppReference(text) else {
      throw error(
        "'\((text ?? "").sanitized)' is neither an identifier such as com.example.editor nor a name; "
          + "'insula apps' lists the apps")
    }
    return app
  }

  /// Several of them.
  func apps(_ words: some Sequence<String>) throws(UsageError) -> [AppReference] {
    try words.map { (word) throws(UsageError) in try app(word) }
  }
}

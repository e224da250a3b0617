// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

extension CommandDescription {
  /// An identifier that a person gave.
  func identifier(_ text: String?) throws(UsageError) -> AppIdentifier {
    guard let text, let identifier = AppIdentifier(text) else {
      throw error(
        "'\(text ?? "")' is not an identifier such as com.example.editor; 'insula apps' lists the apps"
      )
    }
    return identifier
  }
}

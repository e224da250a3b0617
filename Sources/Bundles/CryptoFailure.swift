// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CCrypto

/// Something that libcrypto would not do.
package struct CryptoFailure: Error, Sendable {
  /// What was to be done.
  package let doing: String
  /// What libcrypto says of it; empty if it says nothing.
  package let reason: String

  /// Takes the reason from libcrypto's queue of errors for this thread, and empties it.
  init(doing: String) {
    self.doing = doing
    let code = ERR_peek_last_error()
    ERR_clear_error()
    guard code != 0 else {
      reason = ""
      return
    }
    reason = ERR_reason_error_string(code).map { String(cString: $0) } ?? "error \(code)"
  }

  /// libcrypto is not there, so it can't be asked.
  init(missing reason: String) {
    doing = "load libcrypto"
    self.reason = reason
  }

  /// Says by ourselves why it can't be.
  init(_ doing: String, _ reason: String) {
    self.doing = doing
    self.reason = reason
    ERR_clear_error()
  }
}

extension CryptoFailure: CustomStringConvertible {
  package var description: String { reason.isEmpty ? "can't \(doing)" : "can't \(doing): \(reason)" }
}

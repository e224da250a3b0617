// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The command line makes no sense.
struct UsageError: Error, Equatable {
  let message: String
}

extension CommandDescription {
  /// A usage error that says where to read on.
  func error(_ message: String) -> UsageError {
    UsageError(message: "\(name): \(message); see 'insula \(name) --help'")
  }
}

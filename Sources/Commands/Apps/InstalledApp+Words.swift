// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Store

extension InstalledApp {
  /// What a person knows it by.
  var title: String { "\(name.sanitized) \(release) (\(identifier))" }

  /// The version that a person knows.
  var release: String { (shortVersion.isEmpty ? version : shortVersion).sanitized }
}

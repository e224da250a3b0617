// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

/// An app as a user has it: whatever runs of it uses the same container.
package struct AppOfUser: Hashable, Sendable {
  /// Identifiers that differ by case are the same.
  private let app: String
  private let user: UInt32

  init(_ app: AppIdentifier, _ user: UInt32) {
    self.app = app.text.lowercased()
    self.user = user
  }

  /// Whether it is an app of that identifier, of a user's or anybody's.
  func isOf(_ identifier: AppIdentifier, _ user: UInt32?) -> Bool {
    app == identifier.text.lowercased() && (user == nil || user == self.user)
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The rule that has refused something, by a word that logs have; the same in all versions.
package enum RefusalRule: String, Sendable, CaseIterable {
  /// The system domain, and installed apps.
  case system, app
  /// Location rules: standard directories, containers, what is delivered, and all others.
  case standard, container, inbox, place
  /// The app's view has it for reading only; was granted for reading only; only a file in it was granted.
  case view, readOnlyGrant = "read-only-grant", besideGrant = "beside-grant"
  /// Between what was granted and all else.
  case boundary
  /// A program of a sandboxed app that was started past the app's view.
  case sandbox
  /// What is private, without its user's consent.
  case consent
  case flags, acl, mode, owner, sticky, append
  /// No rule: two workers have died by the request.
  case deadly

  /// Whether it is worth a line where no app has asked: the mode and the owner refuse users something all
  /// day, as on every Linux.
  package var isOurs: Bool {
    switch self {
    case .mode, .owner, .sticky: false
    default: true
    }
  }
}

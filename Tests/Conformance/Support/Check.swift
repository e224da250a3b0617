// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// One statement about how a filesystem behaves, and the code that tries it.
package struct Check: Sendable {
  /// Who has to act for the statement to mean something.
  package enum Cast: Sendable {
    /// Whoever runs the list, root included.
    case anyone
    /// An ordinary user: root, who passes permission checks, takes on a user's ids first.
    case user
    /// Several users, so only a list run by root can try it; the body starts as root.
    case several
    /// Root alone.
    case root
  }

  /// The name, from the family to the detail: `rename.noreplace.existing-target-is-EEXIST`.
  package let name: String
  let cast: Cast
  /// Programs that the body runs; without them the check is skipped.
  let tools: [String]
  let body: @Sendable (borrowing Trial) throws -> Void
}

/// The list under construction; each family adds its checks by calling it.
struct Checks {
  private(set) var all: [Check] = []

  mutating func callAsFunction(
    _ name: String, _ cast: Check.Cast = .anyone, tools: [String] = [],
    _ body: @escaping @Sendable (borrowing Trial) throws -> Void
  ) {
    all.append(Check(name: name, cast: cast, tools: tools, body: body))
  }
}

/// What a check that was tried came to.
package enum Verdict: Equatable, Sendable {
  /// The statement holds.
  case passed
  /// It does not; the text says what was expected and what was seen.
  case failed(String)
  /// It could not be tried here; the text says why.
  case skipped(String)
}

/// Thrown by a trial as soon as something is not as stated.
struct Failure: Error {
  var text: String
}

/// Thrown by a trial that can't be made in this environment.
struct Skip: Error {
  var reason: String
}

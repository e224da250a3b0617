// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// A descriptor that several hold, and that stays open until the last of them has let go.
package final class SharedFD: Sendable {
  private let owned: OwnedFD
  package init(_ owned: consuming OwnedFD) { self.owned = owned }

  /// Its number, for whoever has it after this process.
  package var number: Int32 { owned.fd.raw }

  /// Lends the descriptor; it stays open at least until `body` has returned.
  package func use<Result: ~Copyable>(_ body: (FD) throws(Errno) -> Result) throws(Errno) -> Result {
    // Without this the last reference could go once the number has been read.
    defer { withExtendedLifetime(self) {} }
    return try body(owned.fd)
  }
}

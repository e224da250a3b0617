// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc

/// What ``FD/checkAccess(_:_:)`` asks for.
package struct AccessRights: OptionSet, Sendable {
  package let rawValue: Int32
  package init(rawValue: Int32) { self.rawValue = rawValue }

  package static let write = AccessRights(rawValue: W_OK)
  package static let search = AccessRights(rawValue: X_OK)
}

extension FD {
  /// Throws why this process may not use what is at a path in these ways: EACCES, or why it can't be found.
  ///
  /// For decisions about what to ask for only; who is asked judges again. Corresponds to `faccessat(2)` with
  /// AT_EACCESS.
  package func checkAccess(_ path: some NameText, _ rights: AccessRights) throws(Errno) {
    _ = try path.withName { (path) throws(Errno) in
      try check(faccessat(raw, path.bytes, rights.rawValue, Int32(AT_EACCESS)))
    }
  }
}

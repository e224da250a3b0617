// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The extended attributes that go wherever a file goes, and are sealed with it: those of users, without
/// those by which insula keeps or shows ACLs and flags.
package enum KeptAttributes {
  private static let ours = ["user.insula.", "user.org.insula.", "user.com.apple.system."].map {
    Array($0.utf8)
  }

  package static func contains(_ name: some Collection<UInt8>) -> Bool {
    name.starts(with: "user.".utf8) && !ours.contains { name.starts(with: $0) }
  }
}

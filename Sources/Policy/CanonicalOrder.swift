// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// The order that `chmod` keeps: what is said here before what was inherited, and each time denials before
// permissions. Nothing else depends on this order: an ACL is evaluated as it is stored.

extension AccessControlEntry {
  /// In canonical order these never rise.
  ///
  /// There is one tier for all that is inherited, from however far.
  package var score: Int {
    (kind == .deny ? 1 : 0) - (inheritance.contains(.inherited) ? 5 : 0)
  }
}

extension AccessControlList {
  /// Whether it is in the order that `chmod` keeps.
  package var isCanonical: Bool {
    zip(entries, entries.dropFirst()).allSatisfy { $0.score >= $1.score }
  }

  /// Where an entry goes in canonical order: before all others of its score.
  func canonicalIndex(of entry: AccessControlEntry) -> Int {
    entries.firstIndex { $0.score <= entry.score } ?? entries.count
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension AccessControlList {
  /// What an object gets that is made in a directory with this list; nil if that is no list at all.
  ///
  /// Entries are inherited when an object is made and at no other time: what is moved keeps what it has, and
  /// what is changed here later stays here. Symbolic links never inherit.
  package func inherited(byDirectory isDirectory: Bool) -> AccessControlList? {
    let wanted: AccessControlEntry.Inheritance = isDirectory ? .directoryInherit : .fileInherit
    let passedOn = entries.filter { $0.inheritance.contains(wanted) }
    if passedOn.isEmpty { return nil }
    return AccessControlList(passedOn.map { $0.inherited(byDirectory: isDirectory) })
  }
}

extension AccessControlEntry {
  /// The entry as it is in what was made: it counts there, and goes on to what is made in that, unless it is
  /// limited.
  fileprivate func inherited(byDirectory isDirectory: Bool) -> AccessControlEntry {
    var copy = self
    copy.inheritance.insert(.inherited)
    copy.inheritance.remove(.onlyInherit)
    if !isDirectory || inheritance.contains(.limitInherit) { copy.inheritance.subtract(.controls) }
    return copy
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension AccessControlList {
  /// What an object gets that is made in a directory with this ACL; nil if that is no ACL at all.
  ///
  /// Entries are inherited only when an object is created. A moved object keeps its ACL, and later changes of
  /// this ACL affect no existing object. Symbolic links never inherit.
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

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension AccessControlList {
  /// The ACL that is equivalent to a mode, for programs that read the ACL of a file without one.
  ///
  /// A mode judges everyone by exactly one class, while an ACL is evaluated until all rights are granted. So
  /// rights that an owner or group lacks and a later class has must be denied explicitly (RFC 8881, section
  /// 6.4.3). Each deny entry comes right before the permit entry of its class. If all deny entries came
  /// first, as is usual, those of the group would also apply to an owner who is in the group.
  ///
  /// The ACL says exactly what the mode says: setting it on the object changes no decision.
  package init(mode: UInt32, isDirectory: Bool) {
    let others = Rights(classBits: mode, isDirectory: isDirectory, mayDeleteAll: mode & stickyBit == 0)
    let group = Rights(classBits: mode >> 3, isDirectory: isDirectory, mayDeleteAll: mode & stickyBit == 0)
    let owner = Rights(classBits: mode >> 6, isDirectory: isDirectory, mayDeleteAll: true)
      .union([.writeAttributes, .writeSecurity])
    var entries: [AccessControlEntry] = []
    let deniedToOwner = group.union(others).subtracting(owner)
    if !deniedToOwner.isEmpty { entries.append(AccessControlEntry(.deny, .owner, deniedToOwner)) }
    entries.append(AccessControlEntry(.permit, .owner, owner))
    let deniedToGroup = others.subtracting(group)
    if !deniedToGroup.isEmpty { entries.append(AccessControlEntry(.deny, .owningGroup, deniedToGroup)) }
    entries.append(AccessControlEntry(.permit, .owningGroup, group))
    entries.append(AccessControlEntry(.permit, .everyone, others))
    self.init(entries)
  }
}

private let stickyBit: UInt32 = 0o1000

extension Rights {
  /// What three bits of a mode stand for.
  ///
  /// In a sticky directory only its owner may remove everything; what others may remove there depends on
  /// whose it is, which no right says, and the right to remove everything would override.
  fileprivate init(classBits: UInt32, isDirectory: Bool, mayDeleteAll: Bool) {
    self = [.readAttributes, .readSecurity]
    if classBits & 4 != 0 { formUnion([.read, .readExtended]) }
    if classBits & 2 != 0 {
      formUnion([.write, .append, .writeExtended, .writeAttributes])
      if isDirectory, mayDeleteAll { insert(.deleteChild) }
    }
    if classBits & 1 != 0 { insert(.execute) }
  }
}

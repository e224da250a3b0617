// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension AccessControlList {
  /// The list that says what a mode says, for those who ask a file that has none.
  ///
  /// A mode gives everyone exactly one class. A list goes on until all is granted, so what an owner or a
  /// group has less than those who come after it must be denied to it (RFC 8881, section 6.4.3). Each denial
  /// stands right before the permission of the same class: before all permissions, as is usual, it would hit
  /// an owner who is in the group.
  ///
  /// No entry says less or more than the mode itself: an object that is given this list allows what it
  /// allowed before.
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

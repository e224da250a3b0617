// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// NFSv4's form of an ACL (RFC 7530, section 6.2.1) in XDR, as the Linux NFS client shows it in the attribute
// `system.nfs4_acl` and nfs4-acl-tools read and write it. All words have their most significant byte first.
//
//     0   number of entries
//     4   per entry: type, flags, mask, length of `who`, and `who` itself,
//         filled up with zeros to a multiple of four
//
// The two models have the same rights and kinds, bit for bit, so the bits are translated one by one, and what
// an ACL means stays what it means on a Mac: entries count in order, and where none applies the mode decides.

private enum Flag {
  static let successfulAccess: UInt32 = 0x10
  static let failedAccess: UInt32 = 0x20
  static let identifierGroup: UInt32 = 0x40
}

private let kinds: [(AccessControlEntry.Kind, UInt32)] = [(.permit, 0), (.deny, 1), (.audit, 2), (.alarm, 3)]

private let inheritances: [(AccessControlEntry.Inheritance, UInt32)] = [
  (.fileInherit, 0x1), (.directoryInherit, 0x2), (.limitInherit, 0x4), (.onlyInherit, 0x8),
  (.inherited, 0x80),
]

private let rightBits: [(Rights, UInt32)] = [
  (.read, 0x1), (.write, 0x2), (.append, 0x4), (.readExtended, 0x8), (.writeExtended, 0x10), (.execute, 0x20),
  (.deleteChild, 0x40), (.readAttributes, 0x80), (.writeAttributes, 0x100), (.delete, 0x1_0000),
  (.readSecurity, 0x2_0000), (.writeSecurity, 0x4_0000), (.takeOwnership, 0x8_0000),
  (.synchronize, 0x10_0000),
]

/// WRITE_RETENTION and WRITE_RETENTION_HOLD of NFSv4.1.
private let retentionBits: UInt32 = 0x600

/// Type, flags, mask and length.
private let smallestEntry = 16

extension AccessControlList {
  /// Reads NFSv4's form.
  package init(nfs4 bytes: UnsafeRawBufferPointer, names: AccountNames) throws(MalformedACL) {
    var reader = BigEndianReader(bytes)
    guard let count = reader.word() else { throw .malformed("it has no count") }
    guard Int(count) <= reader.remaining / smallestEntry else {
      throw .malformed("it is too short for \(count) entries")
    }
    guard count <= Self.maximumCount else { throw .tooManyEntries }
    var entries: [AccessControlEntry] = []
    entries.reserveCapacity(Int(count))
    for index in 0..<Int(count) {
      entries.append(try AccessControlEntry(nfs4: &reader, names: names, index: index))
    }
    guard reader.remaining == 0 else { throw .malformed("data follows the last entry") }
    self.init(entries)
  }

  /// NFSv4's form of this ACL.
  package func nfs4(names: AccountNames) throws(MalformedACL) -> [UInt8] {
    guard flags.isEmpty else { throw .inexpressible("the ACL itself has flags") }
    var bytes: [UInt8] = []
    bytes.append(bigEndian: UInt32(truncatingIfNeeded: entries.count))
    for (index, entry) in entries.enumerated() {
      try entry.appendNFS4(to: &bytes, names: names, index: index)
    }
    return bytes
  }
}

extension AccessControlEntry {
  fileprivate init(nfs4 reader: inout BigEndianReader, names: AccountNames, index: Int) throws(MalformedACL) {
    guard let type = reader.word(), let flags = reader.word(), let mask = reader.word(),
      let length = reader.word()
    else { throw .malformed("entry \(index) is truncated") }
    guard let kind = kinds.first(where: { $0.1 == type })?.0 else {
      throw .malformed("entry \(index) has an unknown type")
    }
    guard flags & (Flag.successfulAccess | Flag.failedAccess) == 0 else {
      throw .inexpressible("entry \(index) is an audit or alarm entry")
    }
    guard mask & retentionBits == 0 else { throw .inexpressible("entry \(index) has a right of retention") }

    var inheritance: Inheritance = []
    var unknownFlags = flags & ~Flag.identifierGroup
    for (member, bit) in inheritances where flags & bit != 0 {
      inheritance.insert(member)
      unknownFlags &= ~bit
    }
    guard unknownFlags == 0 else { throw .malformed("entry \(index) has an unknown flag") }

    var rights: Rights = []
    var unknownRights = mask
    for (right, bit) in rightBits where mask & bit != 0 {
      rights.insert(right)
      unknownRights &= ~bit
    }
    guard unknownRights == 0 else { throw .malformed("entry \(index) has an unknown right") }

    let who = try NFS4Who(
      nfs4: &reader, length: length, isGroup: flags & Flag.identifierGroup != 0, index: index)
    self.init(kind, try who.principal(names: names, index: index), rights, inheritance)
  }

  fileprivate func appendNFS4(
    to bytes: inout [UInt8], names: AccountNames, index: Int
  ) throws(MalformedACL) {
    var unsaid = rights
    var mask: UInt32 = 0
    for (right, bit) in rightBits where rights.contains(right) {
      mask |= bit
      unsaid.remove(right)
    }
    // Each stands for several rights. If they were written out, reading them back would give another ACL.
    guard unsaid.isEmpty else { throw .inexpressible("entry \(index) has a generic right") }
    let who = try NFS4Who(principal, names: names, index: index)
    var flags = who.isGroup ? Flag.identifierGroup : 0
    for (member, bit) in inheritances where inheritance.contains(member) { flags |= bit }
    for (kind, type) in kinds where kind == self.kind { bytes.append(bigEndian: type) }
    bytes.append(bigEndian: flags)
    bytes.append(bigEndian: mask)
    let text = who.text.utf8
    bytes.append(bigEndian: UInt32(truncatingIfNeeded: text.count))
    bytes.append(contentsOf: text)
    bytes.append(contentsOf: repeatElement(0, count: padding(after: text.count)))
  }
}

extension NFS4Who {
  fileprivate init(
    nfs4 reader: inout BigEndianReader, length: UInt32, isGroup: Bool, index: Int
  ) throws(MalformedACL) {
    guard (1...UInt32(Self.maximumLength)).contains(length) else {
      throw .malformed("entry \(index) has a name of \(length) bytes")
    }
    guard let name = reader.take(Int(length)), let filling = reader.take(padding(after: Int(length))) else {
      throw .malformed("entry \(index) is truncated")
    }
    guard filling.allSatisfy({ $0 == 0 }) else {
      throw .malformed("entry \(index) is not padded with zeros")
    }
    // A name would be looked up only as far as its zero.
    guard !name.contains(0), let text = String(validating: name, as: UTF8.self) else {
      throw .malformed("entry \(index) has a name that is not text")
    }
    self.init(text: text, isGroup: isGroup)
  }
}

/// What XDR fills up with after `count` bytes.
private func padding(after count: Int) -> Int { (4 - count % 4) % 4 }

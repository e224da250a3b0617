// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// Apple's own form of an ACL, in which Macs keep and exchange it: a header of 44 bytes and 24 for each entry,
// all numbers with their most significant byte first.
//
//     0   magic
//     4   the owner's and the group's 128-bit numbers
//     36  number of entries, or `noACLCount`
//     40  flags of the ACL
//     44  per entry: the principal's number, kind and inheritance in one word, rights
//
// The ACL does not depend on the file's owner and group: their fields are ignored when it is read, and
// written as zeros but for a backup.

private let magic: UInt32 = 0x012c_c16d
private let noACLCount: UInt32 = 0xffff_ffff
private let headerSize = 44
private let entrySize = 24
private let kindMask: UInt32 = 0xf

extension AccessControlList {
  /// Reads Apple's form; nil if it says that there is no ACL.
  ///
  /// Nothing unknown is skipped: an ACL that lost an entry could allow what it denied.
  package init?(filesec bytes: UnsafeRawBufferPointer) throws(MalformedACL) {
    var reader = BigEndianReader(bytes)
    guard let word = reader.word(), word == magic else { throw .malformed("the magic number is missing") }
    guard reader.take(32) != nil, let count = reader.word(), let flagWord = reader.word() else {
      throw .malformed("its header is truncated")
    }
    guard count != noACLCount else {
      guard bytes.count == headerSize else { throw .malformed("there is no ACL, but data follows") }
      return nil
    }
    guard UInt64(bytes.count - headerSize) == UInt64(count) * UInt64(entrySize) else {
      throw .malformed("its size does not match \(count) entries")
    }
    guard count <= Self.maximumCount else { throw .tooManyEntries }
    let flags = Flags(rawValue: flagWord)
    guard flags.isSubset(of: .known) else { throw .malformed("the ACL has an unknown flag") }

    var entries: [AccessControlEntry] = []
    entries.reserveCapacity(Int(count))
    for index in 0..<Int(count) {
      entries.append(try AccessControlEntry(filesec: &reader, index: index))
    }
    self.init(entries, flags: flags)
  }

  /// Whose file such bytes are the ACL of; nil if they don't say.
  package static func owner(inFilesec bytes: UnsafeRawBufferPointer) -> Principal? {
    var reader = BigEndianReader(bytes)
    guard reader.word() == magic, let high = reader.doubleWord(), let low = reader.doubleWord(),
      high | low != 0
    else { return nil }
    return Principal(high: high, low: low)
  }

  /// Apple's form of this ACL.
  package var filesec: [UInt8] { filesec(ownedBy: nil) }

  /// The same for a backup, with whose file it is.
  ///
  /// A program that backs up reads the contents and the ACL of one path, and may get those of two files. So
  /// the ACL says itself to whose file it belongs.
  package func filesec(ownedBy owner: Principal?) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(headerSize + entries.count * entrySize)
    bytes.append(bigEndian: magic)
    bytes.append(bigEndian: owner?.high ?? 0)
    bytes.append(bigEndian: owner?.low ?? 0)
    bytes.append(contentsOf: repeatElement(0, count: 16))
    bytes.append(bigEndian: UInt32(truncatingIfNeeded: entries.count))
    bytes.append(bigEndian: flags.rawValue)
    for entry in entries {
      bytes.append(bigEndian: entry.principal.high)
      bytes.append(bigEndian: entry.principal.low)
      bytes.append(bigEndian: entry.kind.rawValue | entry.inheritance.rawValue)
      bytes.append(bigEndian: entry.rights.rawValue)
    }
    return bytes
  }
}

extension AccessControlEntry {
  fileprivate init(filesec reader: inout BigEndianReader, index: Int) throws(MalformedACL) {
    guard let high = reader.doubleWord(), let low = reader.doubleWord(), let word = reader.word(),
      let rightsWord = reader.word()
    else { throw .malformed("entry \(index) is truncated") }
    guard let kind = Kind(rawValue: word & kindMask) else {
      throw .malformed("entry \(index) has an unknown type")
    }
    let inheritance = Inheritance(rawValue: word & ~kindMask)
    guard inheritance.isSubset(of: .known) else { throw .malformed("entry \(index) has an unknown flag") }
    let rights = Rights(rawValue: rightsWord)
    guard rights.isSubset(of: .known) else { throw .malformed("entry \(index) has an unknown right") }
    self.init(kind, Principal(high: high, low: low), rights, inheritance)
  }
}

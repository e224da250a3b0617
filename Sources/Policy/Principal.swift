// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Whom an entry of an ACL is about.
///
/// Apple's ACLs name people and groups by 128-bit numbers. Those of users and groups of this machine are made
/// from their ids in Apple's own way, so that an ACL can be read on both systems.
package struct Principal: Hashable, Sendable {
  /// The first and the last eight bytes, as the number is written.
  package let high: UInt64
  package let low: UInt64

  package init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// Who that is.
  package enum Meaning: Hashable, Sendable {
    case user(UInt32)
    case group(UInt32)
    case everyone
    /// The object's owner, whoever that is.
    case owner
    /// The object's group, whichever that is.
    case owningGroup
    case nobody
    /// Someone of another machine: no one here can be told to be that, or not to be.
    case foreign
  }

  package static func user(_ uid: UInt32) -> Principal {
    Principal(high: userHigh, low: userLow | UInt64(uid))
  }

  /// A group of this machine.
  ///
  /// Four numbers mean something else on Apple's systems; on Linux they are ordinary groups (12 is `man`),
  /// which must not become everyone, so they get numbers beside Apple's.
  package static func group(_ gid: UInt32) -> Principal {
    Principal(high: groupHigh, low: (isTaken(gid) ? linuxGroupLow : groupLow) | UInt64(gid))
  }

  private static func isTaken(_ gid: UInt32) -> Bool {
    gid == everyoneID || gid == ownerID || gid == owningGroupID || gid == nobodyID
  }

  package static let everyone = Principal(high: groupHigh, low: groupLow | UInt64(everyoneID))
  package static let owner = Principal(high: groupHigh, low: groupLow | UInt64(ownerID))
  package static let owningGroup = Principal(high: groupHigh, low: groupLow | UInt64(owningGroupID))
  package static let nobody = Principal(high: groupHigh, low: groupLow | UInt64(nobodyID))

  package var meaning: Meaning {
    let id = UInt32(truncatingIfNeeded: low)
    let prefix = low & 0xffff_ffff_0000_0000
    if high == Self.userHigh, prefix == Self.userLow { return .user(id) }
    guard high == Self.groupHigh else { return .foreign }
    // One number for each group: beside Apple's only what is not among Apple's.
    if prefix == Self.linuxGroupLow { return Self.isTaken(id) ? .group(id) : .foreign }
    guard prefix == Self.groupLow else { return .foreign }
    switch id {
    case Self.everyoneID: return .everyone
    case Self.ownerID: return .owner
    case Self.owningGroupID: return .owningGroup
    case Self.nobodyID: return .nobody
    default: return .group(id)
    }
  }

  private static let userHigh: UInt64 = 0xffff_eeee_dddd_cccc
  private static let userLow: UInt64 = 0xbbbb_aaaa_0000_0000
  private static let groupHigh: UInt64 = 0xabcd_efab_cdef_abcd
  private static let groupLow: UInt64 = 0xefab_cdef_0000_0000
  private static let linuxGroupLow: UInt64 = 0xefab_cdee_0000_0000
  private static let everyoneID: UInt32 = 12
  private static let ownerID: UInt32 = 10
  private static let owningGroupID: UInt32 = 16
  private static let nobodyID: UInt32 = 0xffff_fffe
}

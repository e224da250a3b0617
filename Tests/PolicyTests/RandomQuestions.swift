// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import TestSupport

/// A question for both evaluators, in the words of each.
struct Question {
  let rights: UInt32
  let naive: NaiveDecision
  let object: Object
  let parent: Object?
}

/// Questions from a fixed seed: few people and groups, so that they meet often; all kinds, flags, zones and
/// rights.
struct Questions {
  private var random: SeededRandom

  init(seed: UInt64) { random = SeededRandom(seed: seed) }

  mutating func question() -> Question {
    let rights = rights()
    let caller = caller()
    let (node, object) = thing(isParent: false)
    guard !chance(10) else {
      return Question(
        rights: rights, naive: NaiveDecision(node: node, parent: nil, caller: caller), object: object,
        parent: nil)
    }
    let (directory, parent) = thing(isParent: true)
    return Question(
      rights: rights, naive: NaiveDecision(node: node, parent: directory, caller: caller), object: object,
      parent: parent)
  }

  /// One in so many.
  mutating func chance(_ outOf: UInt64) -> Bool { random.next() % outOf == 0 }

  private mutating func below(_ bound: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: random.next() % bound) }

  private mutating func rights() -> UInt32 {
    if chance(3) { return 1 << (1 + below(13)) }
    if chance(4) { return 0x10 }
    if chance(40) { return 0x200_0000 }
    if chance(4) { return below(1 << 14) & below(1 << 14) & ~1 }
    var rights: UInt32 = 0
    for _ in 0...below(3) { rights |= 1 << (1 + below(13)) }
    if chance(30) { rights |= 1 << (20 + below(6)) }
    return rights
  }

  private mutating func caller() -> NaiveCaller {
    let bits = below(1 << 16) & below(1 << 16)
    var groups: [UInt32] = []
    var unknown: [UInt32] = []
    for index in 0..<8 {
      if bits >> UInt32(index) & 1 != 0 { groups.append(groupID(index)) }
      if bits >> UInt32(index) & 0x700 == 0x100 { unknown.append(groupID(index)) }
    }
    return NaiveCaller(
      uid: chance(12) ? 0 : 1 + below(4), gid: groupID(Int(below(8))), groups: groups, unknownGroups: unknown)
  }

  /// Among them the numbers that mean something else in Apple's ACLs, and are ordinary groups here.
  private func groupID(_ index: Int) -> UInt32 {
    switch index {
    case 0: 0
    case 1: 10
    case 2: 12
    case 3: 16
    case 4: 20
    case 5: 80
    case 6: 0xffff_fffe
    default: 1000
    }
  }

  private mutating func thing(isParent: Bool) -> (NaiveObject, Object) {
    let naiveACL = chance(3) ? nil : entries()
    let isDamaged = naiveACL == nil && chance(6)
    var flags: UInt32 = 0
    if chance(10) { flags |= 1 << (1 + below(2)) }
    if chance(10) { flags |= 1 << (16 + below(5)) }
    if chance(20) { flags |= 0x8009 }
    let (zone, sealed, skeleton) = zone()
    let isClosed = zone == .container || zone == .containerData
    let (naiveKind, kind) = isParent ? (.directory, .directory) : kind()
    let naive = NaiveObject(
      uid: below(5), gid: groupID(Int(below(8))), mode: chance(3) ? below(0o10000) : below(0o10000) | 0o666,
      kind: naiveKind,
      sealed: sealed, skeleton: skeleton, closed: isClosed,
      data: zone == .containerData || zone == .macContainerData, own: zone == .containerOwn,
      fixture: zone == .containerFixture,
      inbox: zone == .inbox, delivered: zone == .delivered, flags: flags,
      acl: naiveACL, damaged: isDamaged)
    let acl: AccessControl =
      if let naiveACL { .acl(AccessControlList(naiveACL.map(Self.inOurWords))) } else {
        isDamaged ? .damaged : .none
      }
    let object = Object(
      uid: naive.uid, gid: naive.gid, mode: naive.mode, kind: kind, zone: zone,
      flags: FileFlags(rawValue: flags),
      acl: acl)
    return (naive, object)
  }

  private mutating func kind() -> (NaiveObject.Kind, Object.Kind) {
    switch below(8) {
    case 0, 1, 2: (.directory, .directory)
    case 3: (.symlink, .symlink)
    case 4: (.special, .special)
    default: (.file, .file)
    }
  }

  private mutating func zone() -> (Zone, sealed: Bool, skeleton: Bool) {
    guard chance(12) else { return (chance(2) ? .user : chance(2) ? .local : .network, false, false) }
    switch below(22) {
    case 0: return (.top, true, true)
    case 1: return (.system, true, false)
    case 2: return (.applications, false, true)
    case 3: return (.library, false, true)
    case 4: return (.localStandard, false, true)
    case 5: return (.networkStandard, false, true)
    case 6: return (.users, false, true)
    case 7: return (.container, false, false)
    case 8: return (.containerData, false, false)
    case 9: return (.containerFixture, false, false)
    case 10: return (.groupContainer, false, false)
    case 11: return (.utilities, false, true)
    case 12: return (chance(2) ? .homeApplications : .networkApplications, false, false)
    case 13: return (.localApp, true, false)
    case 14: return (chance(2) ? .networkApp : .userApp, true, false)
    case 15: return (.inbox, false, false)
    case 16: return (.delivered, false, false)
    case 17: return (.containerDocuments, false, false)
    case 18: return (.macContainerData, false, false)
    case 19: return (.containerOwn, false, false)
    case 20: return (.trashes, false, true)
    default: return (.sharedStandard, false, true)
    }
  }

  private mutating func entries() -> [NaiveEntry] {
    var entries: [NaiveEntry] = []
    for _ in 0..<below(chance(10) ? 20 : 5) { entries.append(entry()) }
    return entries
  }

  private mutating func entry() -> NaiveEntry {
    let kinds: UInt32 = below(20)
    let kind: UInt32 = kinds == 0 ? 3 : kinds == 1 ? 4 : kinds < 13 ? 1 : 2
    var rights = below(1 << 14) & ~1
    if chance(2) { rights &= below(1 << 14) }
    if chance(8) { rights |= 1 << (20 + below(5)) }
    let who: NaiveEntry.Who
    switch below(10) {
    case 0: who = .everyone
    case 1: who = .owner
    case 2: who = .owningGroup
    case 3: who = .nobody
    case 4: who = .foreign
    case 5, 6: who = .user
    default: who = .group
    }
    let id = who == .user ? below(5) : groupID(Int(below(8)))
    return NaiveEntry(
      kind: kind, who: who, id: id, rights: rights, flags: chance(4) ? below(32) << 4 : 0)
  }

  private static func inOurWords(_ entry: NaiveEntry) -> AccessControlEntry {
    let principal: Principal =
      switch entry.who {
      case .everyone: .everyone
      case .owner: .owner
      case .owningGroup: .owningGroup
      case .nobody: .nobody
      case .foreign: Principal(high: 0x1234, low: UInt64(entry.id))
      case .user: .user(entry.id)
      case .group: .group(entry.id)
      }
    let kind: AccessControlEntry.Kind =
      switch entry.kind {
      case 1: .permit
      case 2: .deny
      case 3: .audit
      default: .alarm
      }
    return AccessControlEntry(
      kind, principal, Rights(rawValue: entry.rights), .init(rawValue: entry.flags))
  }
}

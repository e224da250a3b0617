// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// The second opinion: the rules once more, in the order and the numbers in which they are written down, by
// someone who knows nothing of Policy. No type, constant or function of Policy is used here, and nothing is
// clever.

struct NaiveEntry {
  enum Who { case everyone, owner, owningGroup, nobody, foreign, user, group }
  /// 1 permit, 2 deny, 3 audit, 4 alarm.
  var kind: UInt32
  var who: Who
  var id: UInt32
  var rights: UInt32
  /// 0x10 inherited, 0x20 file_inherit, 0x40 directory_inherit, 0x80 limit_inherit, 0x100 only_inherit.
  var flags: UInt32
}

struct NaiveObject {
  enum Kind { case file, directory, symlink, special }
  var uid: UInt32
  var gid: UInt32
  var mode: UInt32
  var kind: Kind
  var sealed: Bool
  var skeleton: Bool
  /// A directory of a container whose names were settled when it was made.
  var closed: Bool
  /// What an app has as its home, of whichever shape it is.
  var data: Bool
  /// Has a name with a dot in such a home.
  var own: Bool
  /// What in a container is nobody's to change.
  var fixture: Bool
  /// An Inbox, or something in one.
  var inbox: Bool
  var delivered: Bool
  var flags: UInt32
  var acl: [NaiveEntry]?
  var damaged: Bool
}

struct NaiveCaller {
  enum Answer { case yes, no, unknown }
  var uid: UInt32
  var gid: UInt32
  var groups: [UInt32]
  var unknownGroups: [UInt32]

  func isIn(_ group: UInt32) -> Answer {
    if group == gid { return .yes }
    if groups.contains(group) { return .yes }
    return unknownGroups.contains(group) ? .unknown : .no
  }
}

enum NaiveAnswer: Int, CaseIterable {
  case allow, sealed, place, flags, acl, mode, ownership, sticky
}

/// Section 2: the bits.
private enum Bit {
  static let read: UInt32 = 0x2
  static let write: UInt32 = 0x4
  static let execute: UInt32 = 0x8
  static let delete: UInt32 = 0x10
  static let append: UInt32 = 0x20
  static let deleteChild: UInt32 = 0x40
  static let writeAttributes: UInt32 = 0x100
  static let readExtended: UInt32 = 0x200
  static let writeExtended: UInt32 = 0x400
  static let writeSecurity: UInt32 = 0x1000
  static let chown: UInt32 = 0x2000
  static let link: UInt32 = 0x200_0000
  static let writeClass: UInt32 = 0x200_3574
}

struct NaiveDecision {
  let node: NaiveObject
  let parent: NaiveObject?
  let caller: NaiveCaller

  /// Section 2: the generic bits.
  func expand(_ rights: UInt32) -> UInt32 {
    var result = rights & ~0x1e0_0000
    if rights & 0x100_0000 != 0 || rights & 0x20_0000 != 0 { result |= 0xa82 }
    if rights & 0x80_0000 != 0 || rights & 0x20_0000 != 0 { result |= 0x1574 }
    if rights & 0x40_0000 != 0 || rights & 0x20_0000 != 0 { result |= 0x8 }
    return result
  }

  /// Section 3.2.
  func answer(_ request: UInt32) -> NaiveAnswer {
    let r = expand(request)
    let deletes = r & Bit.delete != 0
    if r & Bit.writeClass != 0 {
      if node.sealed { return .sealed }
      if deletes, parent?.sealed == true { return .sealed }
    }
    if r & Bit.writeClass != 0, node.fixture { return .place }
    let changes = r & Bit.writeClass
    if node.inbox, node.kind == .directory, changes & ~Bit.deleteChild != 0 { return .place }
    if node.inbox, node.kind != .directory, changes & ~(Bit.delete | Bit.deleteChild) != 0 { return .place }
    if node.delivered, changes & ~(Bit.delete | Bit.deleteChild) != 0 { return .place }
    if deletes, node.skeleton { return .place }
    if deletes, let parent, parent.data ? !node.own : parent.closed { return .place }
    if node.closed, node.kind == .directory, r & (Bit.write | Bit.append | Bit.deleteChild) != 0 {
      return .place
    }
    if isRestrained(node, r) { return .flags }
    if deletes, let parent, isRestrained(parent, Bit.deleteChild) { return .flags }
    if caller.uid == 0 {
      let needsBit = r & Bit.execute != 0 && node.kind != .directory
      return needsBit && node.mode & 0o111 == 0 ? .mode : .allow
    }
    if deletes {
      let decided = deletion()
      if decided != .allow { return decided }
    }
    if r & ~Bit.delete & ~Bit.link == 0 { return .allow }
    return simple(r & ~Bit.link)
  }

  /// Section 5.1.
  func isRestrained(_ object: NaiveObject, _ rights: UInt32) -> Bool {
    var changes = rights & Bit.writeClass
    if object.kind == .special { changes = changes & ~Bit.write & ~Bit.append }
    if changes == 0 { return false }
    if object.flags & 0x2 != 0 || object.flags & 0x2_0000 != 0 { return true }
    if object.flags & 0x4 != 0 || object.flags & 0x4_0000 != 0 {
      let sanitized =
        object.kind == .directory
        ? Bit.write | Bit.append | Bit.writeExtended : Bit.append | Bit.writeExtended
      if changes & ~sanitized != 0 { return true }
    }
    return object.flags & 0x10_0000 != 0 && changes & Bit.delete != 0
  }

  /// Section 3.1.
  ///
  /// The answer, what is left over, and what was refused.
  func evaluate(_ object: NaiveObject, _ requested: UInt32) -> (
    said: Character, left: UInt32, refused: UInt32
  ) {
    if requested == 0 { return ("a", 0, 0) }
    var residual = requested
    for entry in object.acl ?? [] {
      if entry.flags & 0x100 != 0 { continue }
      if entry.kind == 3 || entry.kind == 4 { continue }
      let rights = expand(entry.rights)
      guard entry.kind == 1 else {
        if rights & requested == 0 { continue }
        if matches(entry, object) == .no { continue }
        return ("d", residual, rights & requested)
      }
      if rights & residual == 0 { continue }
      if matches(entry, object) != .yes { continue }
      residual = residual & ~rights
      if residual == 0 { return ("a", 0, 0) }
    }
    return ("?", residual, 0)
  }

  /// Section 2: principals.
  func matches(_ entry: NaiveEntry, _ object: NaiveObject) -> NaiveCaller.Answer {
    switch entry.who {
    case .everyone: return .yes
    case .nobody: return .no
    case .foreign: return .unknown
    case .owner: return caller.uid == object.uid ? .yes : .no
    case .user: return caller.uid == entry.id ? .yes : .no
    case .owningGroup: return caller.isIn(object.gid)
    case .group: return caller.isIn(entry.id)
    }
  }

  /// Section 3.3.
  func deletion() -> NaiveAnswer {
    // What a stranger says of it counts nothing in one's own directory.
    let isLeft = parent.map { $0.uid == caller.uid } == true && node.uid != caller.uid && node.uid != 0
    if node.damaged, !isLeft { return .acl }
    if node.acl != nil {
      let item = evaluate(node, Bit.delete)
      if item.said == "d", !isLeft { return .acl }
      if item.said == "a" { return .allow }
    }
    guard let parent else { return .mode }
    if parent.damaged { return .acl }
    if parent.acl != nil {
      let directory = evaluate(parent, Bit.deleteChild)
      if directory.said == "d" { return .acl }
      if directory.said == "a" { return .allow }
    }
    if !hasBits(parent, 2) { return .mode }
    if parent.mode & 0o1000 != 0 && caller.uid != node.uid && caller.uid != parent.uid { return .sticky }
    return .allow
  }

  /// Section 3.4.
  func simple(_ request: UInt32) -> NaiveAnswer {
    var r = request
    let owns = caller.uid == node.uid
    if owns { r = r & ~Bit.writeSecurity }
    if r & Bit.chown != 0 { r = r & ~Bit.writeSecurity }
    if r == 0 { return .allow }
    if node.damaged { return r & (Bit.chown | Bit.writeSecurity) != 0 ? .ownership : .acl }
    if node.acl != nil {
      let result = evaluate(node, r)
      if result.said == "a" { return .allow }
      if result.said == "d" {
        return result.refused & (Bit.chown | Bit.writeSecurity) != 0 ? .ownership : .acl
      }
      r = result.left
    }
    r = r & ~Bit.delete
    if owns { r = r & ~Bit.writeAttributes }
    if r == 0 { return .allow }
    if r & (Bit.chown | Bit.writeSecurity) != 0 { return .ownership }
    var bits: UInt32 = 0
    if r & (Bit.read | Bit.readExtended) != 0 { bits |= 4 }
    if r & (Bit.write | Bit.append | Bit.deleteChild | Bit.writeAttributes | Bit.writeExtended) != 0 {
      bits |= 2
    }
    if r & Bit.execute != 0 { bits |= 1 }
    return hasBits(node, bits) ? .allow : .mode
  }

  /// Section 3.4, rule 9.
  func hasBits(_ object: NaiveObject, _ bits: UInt32) -> Bool {
    let ofOwner = (object.mode / 64) % 8
    let ofGroup = (object.mode / 8) % 8
    let ofOthers = object.mode % 8
    if caller.uid == object.uid { return ofOwner & bits == bits }
    switch caller.isIn(object.gid) {
    case .yes: return ofGroup & bits == bits
    case .no: return ofOthers & bits == bits
    // It may be either: both must do.
    case .unknown: return ofGroup & bits == bits && ofOthers & bits == bits
    }
  }
}

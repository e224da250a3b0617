// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

// What a node knows of its object's list and flags, how it learns that, and what follows when it changes.
//
//  1. Nearly all objects have neither, and a bit of the node says so: no call and no lock more than there
//     would be without lists.
//  2. A node learns about its object once, by one call, when the kernel is told of it or a decision needs it.
//     What is made and inherits nothing needs no call.
//  3. Whoever changes a list or flags tells the cache, then every view, then the kernel, all before the
//     reply.
//  4. What can't be read counts as the strictest there is, and is read again the next time.

extension View {
  /// What counts of a node's object for a decision.
  func object(_ status: FileStatus, _ node: borrowing NodeTable.Pin) -> Object {
    object(
      status, zone: node.zone, reach: scope.reach(of: node.position), security: security(of: node))
  }

  /// The same for what is known of an object without a node.
  func object(_ status: FileStatus, zone: Zone, reach: Reach, security: Security) -> Object {
    let mayArrive = !security.flags.isDisjoint(with: .restraining)
    return Object(
      status, zone: zone, reach: reach, security: security,
      arriving: mayArrive ? volume.arrivingFlags.flags(of: ObjectNumber(status)) : nil)
  }

  /// The list and the flags of a node's object.
  func security(of node: borrowing NodeTable.Pin) -> Security {
    switch node.security {
    case .none:
      return .none
    case .some:
      if let identity = nodes.with(node.id, { $0.identity }), let known = volume.securities.find(identity) {
        return known
      }
      return learnSecurity(of: node)
    case .unknown:
      return learnSecurity(of: node)
    }
  }

  /// What a name stands for, with its list and flags; nobody may give it to anything else meanwhile.
  func look(at name: Name, in directory: FD) throws(Errno) -> (FileStatus, Security) {
    let status = try directory.status(of: name)
    if let (known, identity) = nodes.security(of: ObjectNumber(status)) {
      if case .none = known { return (status, .none) }
      if case .some = known, let security = volume.securities.find(identity) { return (status, security) }
    }
    let object = try nodes.openWithRoom { () throws(Errno) in try directory.child(name) }
    return (try object.fd.status(), (try? volume.metadata.security(of: object.fd)) ?? .unreadable)
  }

  /// Reads the list and the flags, and notes them for all.
  @discardableResult
  func learnSecurity(of node: borrowing NodeTable.Pin) -> Security {
    let changes = volume.securities.changes
    guard let security = try? volume.metadata.security(of: node.fd) else { return .unreadable }
    noteSecurity(security, of: node.id, readAfter: changes)
    return security
  }

  /// Looks by its name whether an object that was found by it has list or flags, and notes if it has not.
  ///
  /// That costs a fraction of the way through its descriptor. Nobody may give the name to anything else
  /// meanwhile.
  func learnSecurity(of node: NodeID, by name: Name, in directory: FD) {
    guard nodes.with(node, { $0.flags.contains(.securityKnown) }) == false else { return }
    let changes = volume.securities.changes
    guard volume.metadata.isBare(name, in: directory) else { return }
    noteSecurity(.none, of: node, readAfter: changes)
  }

  /// Notes what an object has, unless lists or flags have been changed since `changes` was asked for.
  func noteSecurity(_ security: Security, of node: NodeID, readAfter changes: UInt64) {
    if security == .none {
      _ = nodes.with(node) { node in
        if volume.securities.changes == changes { node.flags.insert(.securityKnown) }
      }
      return
    }
    guard let identity = nodes.with(node, { $0.identity }) else { return }
    volume.securities.note(security, of: identity, readAfter: changes)
    let hides = security.hidesAttributes
    _ = nodes.with(node) { node in
      guard volume.securities.changes == changes else { return }
      node.flags.formUnion(hides ? .security : [.securityKnown, .hasSecurity])
    }
  }
}

// MARK: - Changes

extension View {
  /// Tells everyone that an object's list or flags have been changed.
  ///
  /// What it may not be used for any more is out of reach when this returns: through the kernel's memory of
  /// names, of attributes, and through every view.
  func securityChanged(_ status: FileStatus, _ node: borrowing NodeTable.Pin, from before: Object) {
    guard let identity = nodes.with(node.id, { $0.identity }) else { return }
    volume.securities.changed(identity)
    let security = (try? volume.metadata.security(of: node.fd)) ?? .unreadable
    let object = Object(status, zone: node.zone, reach: .everything, security: security)
    let known: Memory = [.security, .attributes]
    forget(known, of: node.number)
    if closes(before, object) { withdrawNames(in: node) }
    others.rightsChanged(of: node.number, from: before, to: object, known)
  }
}

extension Security {
  /// Whether someone may be refused the object's attributes.
  ///
  /// Only the list decides that, whatever the object is.
  var hidesAttributes: Bool {
    mayRefuseAttributes(Object(uid: 0, gid: 0, mode: 0, kind: .file, zone: .user, flags: flags, acl: acl))
  }
}

extension Object {
  /// What counts for a decision.
  init(_ status: FileStatus, zone: Zone, reach: Reach, security: Security, arriving: ArrivingFlags? = nil) {
    self.init(
      uid: status.st_uid, gid: status.st_gid, mode: UInt32(status.permissions),
      kind: Kind(status), zone: zone, flags: security.flags, acl: security.acl, reach: reach,
      arriving: arriving)
  }

  /// Whether there is a list, be it one that can't be read.
  var hasList: Bool { acl != .none }
}

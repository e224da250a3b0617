// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

// What a node knows of its object's ACL and flags, how it learns that, and what follows when it changes.
//
//  1. Nearly all objects have neither, and a bit of the node says so. Then a decision costs no more calls and
//     locks than it would without ACLs.
//  2. A node reads them once, with one call, when the kernel is first told of the object or a decision needs
//     them. A new object that inherits nothing needs no call.
//  3. A change of an ACL or flags invalidates the cache, then every view, then the kernel, all before the
//     reply.
//  4. If reading fails, the strictest security is assumed, and it is read again the next time.

extension View {
  /// What a decision needs to know about a node's object.
  func object(_ status: FileStatus, _ node: borrowing NodeTable.Reference) throws(Errno) -> Object {
    let security = security(of: node)
    if security == .unreadable, node.isOnVolume { try requireServed(node.fd) }
    return object(
      status, zone: judgedZone(of: node), reach: scope.reach(of: node.position), security: security)
  }

  /// Throws if what serves a volume has ended, which is no refusal of an ACL's.
  private func requireServed(_ object: FD) throws(Errno) { _ = try object.statusAnew() }

  /// The same for what is known of an object without a node.
  func object(_ status: FileStatus, zone: Zone, reach: Reach, security: Security) -> Object {
    let mayArrive = !security.flags.isDisjoint(with: .restraining)
    return Object(
      status, zone: zone, reach: reach, security: security,
      arriving: mayArrive ? volume.arrivingFlags.flags(of: ObjectNumber(status)) : nil)
  }

  /// The ACL and the flags of a node's object.
  func security(of node: borrowing NodeTable.Reference) -> Security {
    // Others may have changed it.
    if node.isOnVolume { return learnSecurity(of: node) }
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

  /// The object with this name, with its ACL and flags.
  ///
  /// The caller holds the lock of the directory's names.
  func look(
    at name: Name, in directory: DirectoryChange.Directory
  ) throws(Errno) -> (FileStatus, Security) {
    let isAlone = isAlone(onVolume: directory.volume) && directory.zone.hasNoOwners
    let (isOnVolume, directory) = (directory.isOnVolume, directory.fd)
    let status =
      isOnVolume
      ? try directory.standing(of: name, inMemory: isAlone) : try directory.status(of: name)
    if !volume.attached.keepAttributes(on: ObjectNumber(status)) { return (status, .none) }
    if !isOnVolume, let (known, identity) = nodes.security(of: ObjectNumber(status)) {
      if case .none = known { return (status, .none) }
      if case .some = known, let security = volume.securities.find(identity) { return (status, security) }
    }
    let object = try nodes.openWithRoom { () throws(Errno) in try directory.child(name) }
    let found = isOnVolume ? try object.fd.standing(inMemory: isAlone) : try object.fd.status()
    let security = volume.security(of: object.fd, ObjectNumber(status))
    if security == .unreadable, isOnVolume { try requireServed(object.fd) }
    return (found, security)
  }

  /// Reads the ACL and the flags, and notes them for all.
  @discardableResult
  func learnSecurity(of node: borrowing NodeTable.Reference) -> Security {
    let changes = volume.securities.changes
    let security = volume.security(of: node.fd, node.number)
    if security == .unreadable { return security }
    noteSecurity(security, of: node.id, readAfter: changes)
    return security
  }

  /// Looks up by name whether an object has an ACL or flags, and records in its node if it has none.
  ///
  /// That is much cheaper than through its descriptor. The caller holds the lock of the directory's names.
  func learnSecurity(of node: NodeID, by name: Name, in directory: FD) {
    guard nodes.with(node, { $0.flags.contains(.securityKnown) }) == false else { return }
    let changes = volume.securities.changes
    let isWithout = nodes.number(of: node).map { !volume.attached.keepAttributes(on: $0) } ?? false
    guard isWithout || volume.metadata.isBare(name, in: directory) else { return }
    noteSecurity(.none, of: node, readAfter: changes)
  }

  /// Stores what was read, unless any ACL or flags have changed since `changes` was read.
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
  /// Tells everyone that an object's ACL or flags have been changed.
  ///
  /// When this returns, nothing that is no longer allowed succeeds through a view, or through names and
  /// attributes that a kernel has cached.
  func securityChanged(_ status: FileStatus, _ node: borrowing NodeTable.Reference, from before: Object) {
    guard let identity = nodes.with(node.id, { $0.identity }) else { return }
    volume.securities.changed(identity)
    let security = volume.security(of: node.fd, node.number)
    let object = Object(status, zone: node.zone, reach: .everything, security: security)
    let known: CachedState = [.security, .attributes]
    memory.invalidate(known, of: node.number)
    if audience.isClosed(by: before, object) { memory.withdrawNames(in: node) }
    peers.rightsChanged(of: node.number, from: before, to: object, known)
  }
}

extension Volume {
  /// What is read of an object's ACL and flags.
  func security(of object: FD, _ number: ObjectNumber) -> Security {
    guard attached.keepAttributes(on: number) else { return .none }
    do throws(Errno) {
      return try metadata.security(of: object)
    } catch {
      // Programs that know files by their names find no attributes of what has none any more. Who has that
      // open was asked before, and nobody else gets to it.
      let isGone = [.ENOENT, .ESTALE].contains(error) && attached.queue(ofDevice: number.device) != nil
      return isGone && (try? object.status())?.st_nlink == 0 ? .none : .unreadable
    }
  }
}

extension Security {
  /// Whether someone may be refused the object's attributes.
  ///
  /// Only the ACL decides that, whatever the object is.
  var hidesAttributes: Bool {
    mayRefuseAttributes(Object(uid: 0, gid: 0, mode: 0, kind: .file, zone: .user, flags: flags, acl: acl))
  }
}

extension Object {
  /// What counts for a decision.
  init(_ status: FileStatus, zone: Zone, reach: Reach, security: Security, arriving: ArrivingFlags? = nil) {
    self.init(
      uid: status.st_uid, gid: status.st_gid, mode: security.mode(status.permissions), kind: Kind(status),
      zone: zone, flags: security.flags, acl: security.acl, reach: reach, arriving: arriving)
  }

  /// Whether there is an ACL, even one that can't be read.
  var hasACL: Bool { if case .none = acl { false } else { true } }
}

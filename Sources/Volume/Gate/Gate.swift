// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy

/// What each operation of a view asks before it touches the store.
///
/// The gate collects what counts, has a function of Policy decide, and makes an errno of the reason. Reasons
/// become errnos here and nowhere else, which `make check` looks after.
final class Gate: Sendable {
  let volume: Volume
  let scope: ViewScope
  let nodes: NodeTable
  let audience: Audience
  /// Whether it is the gate of an app's view.
  let isApps: Bool

  init(_ volume: Volume, _ scope: ViewScope, _ nodes: NodeTable, _ audience: Audience, isApps: Bool) {
    self.volume = volume
    self.scope = scope
    self.nodes = nodes
    self.audience = audience
    self.isApps = isApps
  }

  /// Throws unless the caller has all of `rights` to the object.
  ///
  /// A deletion also depends on `parent`.
  func authorize(
    _ rights: Rights, on object: Object, in parent: Object? = nil, by caller: Caller
  ) throws(Errno) {
    guard let denial = denial(of: rights, on: object, in: parent, to: caller) else { return }
    RefusalNote(denial, object.zone, object.reach).leave()
    throw Errno(denial)
  }

  /// Why the caller may not do all of `rights` to the object; nil if they may.
  func denial(
    of rights: Rights, on object: Object, in parent: Object? = nil, to caller: Caller
  ) -> Denial? {
    var groups = SupplementaryGroups(of: caller)
    let decision = decide(rights, on: object, in: parent, by: credentials(of: caller)) { gid in
      Membership(groups.contains(gid))
    }
    if case .deny(let denial) = decision { return denial }
    return nil
  }

  /// Like ``authorize(_:on:in:by:)`` for calls that answer EPERM to whoever is not the owner, or was not
  /// given the right.
  ///
  /// Corresponds to `chmod(2)`, `chown(2)` and `utimensat(2)`.
  func authorizeAsOwner(_ rights: Rights, on object: Object, by caller: Caller) throws(Errno) {
    guard let denial = denial(of: rights, on: object, to: caller) else { return }
    RefusalNote(denial, object.zone, object.reach).leave()
    throw Errno(asOwner: denial)
  }

  func isMember(_ caller: Caller, of gid: UInt32) -> Bool {
    if caller.gid == gid { return true }
    var groups = SupplementaryGroups(of: caller)
    return groups.contains(gid) == true
  }
}

// MARK: - Translation

extension Gate {
  /// Throws the errno of the reason if `decide` refuses something about an object.
  ///
  /// `decide` gets the caller's credentials and a function that looks up group membership.
  @inline(__always)
  func enforce(
    on object: Object, by caller: Caller,
    _ decide: (Credentials, (_ gid: UInt32) -> Membership) -> Decision
  ) throws(Errno) {
    guard case .deny(let denial) = decision(for: caller, decide) else { return }
    RefusalNote(denial, object.zone, object.reach).leave()
    throw Errno(denial)
  }

  /// The same for calls that answer EPERM to whoever is not the owner.
  @inline(__always)
  func enforceAsOwner(
    on object: Object, by caller: Caller,
    _ decide: (Credentials, (_ gid: UInt32) -> Membership) -> Decision
  ) throws(Errno) {
    guard case .deny(let denial) = decision(for: caller, decide) else { return }
    RefusalNote(denial, object.zone, object.reach).leave()
    throw Errno(asOwner: denial)
  }

  @inline(__always)
  private func decision(
    for caller: Caller, _ decide: (Credentials, (_ gid: UInt32) -> Membership) -> Decision
  ) -> Decision {
    var groups = SupplementaryGroups(of: caller)
    return decide(credentials(of: caller)) { gid in Membership(groups.contains(gid)) }
  }

  func credentials(of caller: Caller) -> Credentials {
    // What is cached is cached for one.
    let mayUseView = audience.user.map { $0 == caller.uid || caller.uid == 0 } ?? true
    return Credentials(uid: caller.uid, gid: caller.gid, mayUseView: mayUseView)
  }
}

extension Decision {
  /// Throws the errno of the reason if this is a refusal; `zone` and `reach` are those of what it is about.
  @inline(__always)
  func enforce(in zone: Zone? = nil, reach: Reach? = nil) throws(Errno) {
    guard case .deny(let denial) = self else { return }
    RefusalNote(denial, zone, reach).leave()
    throw Errno(denial)
  }

  /// The errno of the reason; nil if this is no refusal.
  @inline(__always)
  var errno: Errno? {
    if case .deny(let denial) = self { Errno(denial) } else { nil }
  }
}

extension Errno {
  /// The errno of each reason.
  fileprivate init(_ denial: Denial) {
    switch denial {
    case .readOnly: self = .EROFS
    case .place: self = .EPERM
    case .flags, .ownership, .sticky, .appendOnly: self = .EPERM
    case .acl, .mode, .sandbox: self = .EACCES
    case .consent: self = .awaitsConsent
    case .boundary: self = .EXDEV
    }
  }

  /// The same where only owners are given the right.
  fileprivate init(asOwner denial: Denial) {
    switch denial {
    case .acl, .mode: self = .EPERM
    default: self = Errno(denial)
    }
  }
}

extension SupplementaryGroups {
  init(of caller: Caller) { self.init(ofThread: caller.pid, uid: caller.uid, gid: caller.gid) }
}

extension Membership {
  /// What a thread's groups say; nil where that can't be told.
  fileprivate init(_ contains: Bool?) {
    self = contains.map { $0 ? .member : .notMember } ?? .unknown
  }
}

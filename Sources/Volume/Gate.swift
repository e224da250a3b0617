// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy

// The gate: each operation asks here before it touches the store. Reasons become errnos here and nowhere
// else.

extension View {
  /// Throws unless the caller may do all of `rights` to the object; whether it may be deleted hangs on
  /// `parent` too.
  func authorize(
    _ rights: Rights, on object: Object, in parent: Object? = nil, by caller: Caller
  ) throws(Errno) {
    if let denial = denial(of: rights, on: object, in: parent, to: caller) { throw Errno(denial) }
  }

  /// Why the caller may not do all of `rights` to the object; nil if they may.
  func denial(
    of rights: Rights, on object: Object, in parent: Object? = nil, to caller: Caller
  ) -> Denial? {
    var groups = SupplementaryGroups(of: caller)
    return denial(of: rights, on: object, in: parent, to: caller, &groups)
  }

  private func denial(
    of rights: Rights, on object: Object, in parent: Object?, to caller: Caller,
    _ groups: inout SupplementaryGroups
  ) -> Denial? {
    // What is cached is cached for one.
    if let user, caller.uid != user, caller.uid != 0 { return .mode }
    let decision = decide(rights, on: object, in: parent, by: Subject(caller)) { gid in
      Membership(groups.contains(gid))
    }
    if case .deny(let denial) = decision { return denial }
    return nil
  }

  /// Throws unless the caller may give something a name in a directory: `addition` is the right to add such a
  /// thing.
  ///
  /// The directory is asked twice, since a list may say yes to each of two questions and no to both at once.
  func authorizeNewName(_ addition: Rights, in directory: Object, by caller: Caller) throws(Errno) {
    var groups = SupplementaryGroups(of: caller)
    if let denial = denial(of: addition, on: directory, in: nil, to: caller, &groups) { throw Errno(denial) }
    if let denial = denial(of: .search, on: directory, in: nil, to: caller, &groups) { throw Errno(denial) }
  }

  /// Like ``authorize(_:on:in:by:)`` for calls that answer EPERM to whoever is not the owner, or was not
  /// given the right.
  ///
  /// Corresponds to `chmod(2)`, `chown(2)` and `utimensat(2)`.
  func authorizeAsOwner(_ rights: Rights, on object: Object, by caller: Caller) throws(Errno) {
    guard let denial = denial(of: rights, on: object, to: caller) else { return }
    let errno = Errno(denial)
    throw errno == .EACCES ? .EPERM : errno
  }

  /// Throws unless the caller may give the object these flags.
  func authorizeFlags(_ flags: FileFlags, on object: Object, by caller: Caller) throws(Errno) {
    var groups = SupplementaryGroups(of: caller)
    let decision = decideFlagChange(to: flags, on: object, by: Subject(caller)) { gid in
      Membership(groups.contains(gid))
    }
    guard case .deny(let denial) = decision else { return }
    let errno = Errno(denial)
    throw errno == .EACCES ? .EPERM : errno
  }

  /// Throws unless the caller may give the object these ids.
  ///
  /// Corresponds to the rules of `chown(2)`; beyond them, whoever a list grants it may take an object for
  /// themselves.
  func authorizeOwners(uid: UInt32?, gid: UInt32?, on object: Object, by caller: Caller) throws(Errno) {
    var rights = Rights.nothing
    if let uid, uid != object.uid {
      guard caller.uid == 0 || caller.uid == uid else { throw .EPERM }
      rights.insert(.takeOwnership)
    }
    // Also where nothing would change: that is for the owner to ask, as on Linux.
    if rights.isEmpty || gid != nil { rights.insert(.writeSecurity) }
    try authorizeAsOwner(rights, on: object, by: caller)
    if let gid, gid != object.gid, caller.uid != 0, !isMember(caller, of: gid) { throw .EPERM }
  }

  /// Throws unless the caller may give a file one more name.
  ///
  /// Corresponds to `fs.protected_hardlinks`.
  ///
  /// The kernel asks for read and write access too, but its question does not come to us from this call.
  func authorizeLink(to object: Object, by caller: Caller) throws(Errno) {
    try authorize(.link, on: object, by: caller)
    if caller.uid == 0 || caller.uid == object.uid { return }
    let setGroupID = object.mode & (S_ISGID | S_IXGRP) == S_ISGID | S_IXGRP
    guard object.kind == .file, object.mode & S_ISUID == 0, !setGroupID,
      denial(of: [.read, .write], on: object, to: caller) == nil
    else { throw .EPERM }
  }

  /// Throws unless the caller may reach a fifo or a socket.
  ///
  /// The kernel opens fifos and connects to sockets by itself, without a word to us: whoever finds the name
  /// is in. So the name is found only by those who may use what it stands for in every way that the kernel
  /// would let them.
  func authorizeMeetingPoint(_ object: Object, isFifo: Bool, by caller: Caller) throws(Errno) {
    if !object.hasList {
      let all: FileMode = isFifo ? 0o666 : 0o222
      if object.mode & all == all || caller.uid == object.uid { return }
    }
    try authorize(isFifo ? [.read, .write] : .write, on: object, by: caller)
  }

  func isMember(_ caller: Caller, of gid: UInt32) -> Bool {
    if caller.gid == gid { return true }
    var groups = SupplementaryGroups(of: caller)
    return groups.contains(gid) == true
  }

  /// The mode without set-group-id where the caller could not have given it: not a member of the group.
  ///
  /// No file of an app's gets that or set-user-id.
  func allowedMode(_ mode: FileMode, gid: UInt32, isDirectory: Bool, by caller: Caller) -> FileMode {
    let mode = isApps && !isDirectory ? mode & ~(S_ISUID | S_ISGID) : mode
    guard mode & S_ISGID != 0, !isDirectory, caller.uid != 0, !isMember(caller, of: gid) else { return mode }
    return mode & ~S_ISGID
  }
}

extension Errno {
  /// The errno of each reason.
  init(_ denial: Denial) {
    switch denial {
    case .sealed: self = .EROFS
    case .place: self = .EPERM
    case .flags, .ownership, .sticky: self = .EPERM
    case .list, .mode: self = .EACCES
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

extension Subject {
  init(_ caller: Caller) { self.init(uid: caller.uid, gid: caller.gid) }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

/// Who can get to a view.
struct Audience: Sendable {
  /// The only one besides root who can ever get to it, so that nothing cached for them can be seen by
  /// another; nil if all can.
  let user: UInt32?
  /// Credentials of that user, for deciding whether they may search a directory.
  ///
  /// Supplementary groups are not considered.
  private let walker: Credentials?

  init(user: UInt32?) {
    self.user = user
    // An unknown group membership grants nothing, and deny entries for the group apply.
    walker = user.map { Credentials(uid: $0, gid: $0 == ProcessID.user ? ProcessID.group : .max) }
  }

  /// Whether only one user can ever get to the view.
  var isPrivate: Bool { user != nil }

  /// Whether everyone who gets to the view may walk through a directory.
  func mayAllSearch(_ directory: Object) -> Bool {
    guard let walker else { return isSearchableByAll(directory) }
    return decide(.search, on: directory, by: walker) { _ in .unknown } == .allow
  }

  /// Whether a directory was open to all who get to the view and is no more.
  ///
  /// Names in a directory that was closed before are not cached, so nothing has to be withdrawn.
  func isClosed(by before: Object, _ after: Object) -> Bool {
    after.isDirectory && !mayAllSearch(after.everywhere) && mayAllSearch(before.everywhere)
  }
}

extension Object {
  /// The same as a view sees it that lets everything be done to it.
  fileprivate var everywhere: Object {
    Object(uid: uid, gid: gid, mode: mode, kind: kind, zone: zone, flags: flags, acl: acl)
  }
}

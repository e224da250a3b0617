// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Apps
package import Policy
internal import Store
internal import Volume

/// What an app may do with what it is granted.
package enum GrantAccess: String, Codable, Sendable {
  case readOnly = "read-only"
  case readWrite = "read-write"
}

/// What is to become of what an app is granted: asked of a daemon, or done by the command itself where none
/// runs.
///
/// Paths are below the root of the tree; a user is nil for the caller.
package enum GrantRequest: Equatable, Sendable {
  /// Let an app have what is at a path. `inode` is the number of what the caller has seen there; without an
  /// access, it is what the app is made for.
  case grant(
    AppIdentifier, path: String, inode: UInt64?, GrantAccess?, user: UInt32?, on: GrantCondition? = nil)
  /// Take back what is at a path, or all, from an app, or from all that a user has.
  case revoke(AppIdentifier?, path: String?, user: UInt32?)

  var isRevocation: Bool {
    if case .revoke = self { true } else { false }
  }

  var user: UInt32? {
    switch self {
    case .grant(_, _, _, _, let user, _), .revoke(_, _, let user): user
    }
  }
}

/// For whom alone something is granted, and instead of what: what was looked at before may be another app's
/// by now, or taken back.
package struct GrantCondition: Codable, Equatable, Sendable {
  package let team: BackupTeam
  /// The number of the app's grant whose place this one takes, with no more access; it must still be there.
  package let former: Int64?

  package init(team: BackupTeam, insteadOf former: Int64? = nil) {
    (self.team, self.former) = (team, former)
  }
}

extension GrantRequest: Codable {
  private enum Action: String, Codable { case grant, revoke }
  private enum Key: String, CodingKey { case action, identifier, user, path, inode, access, condition }

  package init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: Key.self)
    let user = try fields.decodeIfPresent(UInt32.self, forKey: .user)
    self =
      switch try fields.decode(Action.self, forKey: .action) {
      case .grant:
        .grant(
          try fields.decode(AppIdentifier.self, forKey: .identifier),
          path: try fields.decode(String.self, forKey: .path),
          inode: try fields.decodeIfPresent(UInt64.self, forKey: .inode),
          try fields.decodeIfPresent(GrantAccess.self, forKey: .access), user: user,
          on: try fields.decodeIfPresent(GrantCondition.self, forKey: .condition))
      case .revoke:
        .revoke(
          try fields.decodeIfPresent(AppIdentifier.self, forKey: .identifier),
          path: try fields.decodeIfPresent(String.self, forKey: .path), user: user)
      }
  }

  package func encode(to encoder: any Encoder) throws {
    var fields = encoder.container(keyedBy: Key.self)
    switch self {
    case .grant(let identifier, let path, let inode, let access, let user, let condition):
      try fields.encode(Action.grant, forKey: .action)
      try fields.encode(identifier, forKey: .identifier)
      try fields.encode(path, forKey: .path)
      try fields.encodeIfPresent(inode, forKey: .inode)
      try fields.encodeIfPresent(access, forKey: .access)
      try fields.encodeIfPresent(condition, forKey: .condition)
      try fields.encodeIfPresent(user, forKey: .user)
    case .revoke(let identifier, let path, let user):
      try fields.encode(Action.revoke, forKey: .action)
      try fields.encodeIfPresent(identifier, forKey: .identifier)
      try fields.encodeIfPresent(path, forKey: .path)
      try fields.encodeIfPresent(user, forKey: .user)
    }
  }
}

/// Part of what apps were granted, and the number of the last one if there is more after it.
package struct GrantPage: Equatable, Sendable {
  package let places: [GrantedPlace]
  package let next: Int64?
  /// What all that an app is granted is known by, which is another one after every change; for apps alone.
  package let version: String?

  package init(places: [GrantedPlace], next: Int64?, version: String? = nil) {
    self.places = places
    self.next = next
    self.version = version
  }
}

/// Something that an app was granted, as commands show it.
package struct GrantedPlace: Codable, Equatable, Sendable {
  package let identifier: String
  package let user: UInt32
  /// No other grant of the store gets it; nil from a daemon of an earlier version.
  package let number: Int64?
  /// Whose app it was granted to, and the digest of the root, if that is known.
  package let team: String?
  package let root: String?
  /// Below the root of the tree; what is no UTF-8 in it is shown as something else.
  package var path: String
  package let access: GrantAccess
  package let isDirectory: Bool
  /// Whether nothing is there now; apps are not told, and can look.
  package var isMissing: Bool
  /// Whether it is somewhere below that path, where its user can't get: others have moved it there, or its
  /// disk is away.
  package private(set) var isOutOfReach: Bool?
  /// In seconds since 1970.
  package let granted: Int64

  /// `known` is as much of its path as may be told.
  init(_ record: GrantRecord, at known: KnownPath, isMissing: Bool) {
    self.init(record, isMissing: isMissing)
    guard !known.isAll(of: record) else { return }
    path = String(decoding: GrantPath.path(known.names), as: UTF8.self)
    if !known.isMissing { isOutOfReach = true }
    // For its user it is.
    self.isMissing = true
  }

  init(_ record: GrantRecord, isMissing: Bool) {
    identifier = record.identifier.text
    user = record.user
    number = record.id
    team = record.team.text
    root = record.team.root?.asHexadecimal
    path = record.text
    access = record.isWritable ? .readWrite : .readOnly
    isDirectory = record.isDirectory
    self.isMissing = isMissing
    granted = record.granted
  }
}

extension KnownPath {
  func isAll(of record: GrantRecord) -> Bool { names.count == record.path.count }
}

extension GrantRecord {
  /// The path for people.
  var text: String { String(decoding: GrantPath.path(path), as: UTF8.self) }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Policy
internal import Store

/// What an app may do with what it is granted.
package enum GrantAccess: String, Codable, Sendable {
  case readOnly = "read-only"
  case readWrite = "read-write"
}

/// What is to become of what an app is granted: asked of a daemon, or done by the command itself where none
/// runs.
package struct GrantOrder: Codable, Equatable, Sendable {
  package enum Action: String, Codable, Sendable { case grant, revoke }

  package let action: Action
  /// Which app; nil, to take something back from all that a user has.
  package var identifier: AppIdentifier?
  /// Of which user; nil for who asks.
  package var user: UInt32?
  /// Below the root of the tree; nil, to take all back.
  package var path: String?
  /// The number of what the one who asks has seen there.
  package var inode: UInt64?
  /// Nil for what the app is made for.
  package var access: GrantAccess?

  package init(_ action: Action, _ identifier: AppIdentifier?, path: String? = nil) {
    self.action = action
    self.identifier = identifier
    self.path = path
  }
}

/// Something that an app was granted, as commands show it.
package struct GrantedPlace: Codable, Equatable, Sendable {
  package let identifier: String
  package let user: UInt32
  /// Below the root of the tree; what is no UTF-8 in it is shown as something else.
  package var path: String
  package let access: GrantAccess
  package let isDirectory: Bool
  /// Whether nothing is there now.
  package let isMissing: Bool
  /// In seconds since 1970.
  package let granted: Int64

  init(_ record: GrantRecord, isMissing: Bool) {
    identifier = record.identifier.text
    user = record.user
    path = record.text
    access = record.isWritable ? .readWrite : .readOnly
    isDirectory = record.isDirectory
    self.isMissing = isMissing
    granted = record.granted
  }
}

extension GrantRecord {
  /// The path for people.
  var text: String { String(decoding: GrantPath.path(path), as: UTF8.self) }
}

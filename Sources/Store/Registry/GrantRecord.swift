// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import LinuxIO
package import Policy

/// What tells an object of a store from every other, also after the machine has started again.
package struct ObjectIdentity: Codable, Equatable, Sendable {
  package let inode: UInt64
  /// Its handle; empty where the filesystem has none.
  package let handle: [UInt8]
  /// In nanoseconds since 1970; 0 where the filesystem does not know.
  package let created: Int64

  package init(inode: UInt64, handle: [UInt8], created: Int64) {
    self.inode = inode
    self.handle = handle
    self.created = created
  }

  /// Asks the filesystem.
  package init(_ status: FileStatus, of object: FD) {
    inode = UInt64(status.st_ino)
    handle = object.handle()?.encoded ?? []
    let time = (try? object.creationTime()) ?? nil
    created = time.map { Int64($0.tv_sec) &* 1_000_000_000 &+ Int64($0.tv_nsec) } ?? 0
  }

  /// A number is given to another object when the first is gone; handles and times tell the two apart.
  package static func == (one: ObjectIdentity, other: ObjectIdentity) -> Bool {
    guard one.inode == other.inode else { return false }
    return one.handle.isEmpty || other.handle.isEmpty
      ? one.created == other.created : one.handle == other.handle
  }
}

/// What a user has granted an app.
package struct GrantRecord: Equatable, Sendable {
  package var id: Int64
  package let identifier: AppIdentifier
  /// Who has granted it, and for whom the app runs that has it.
  package let user: UInt32
  /// Whose app it was granted to: another team's of the same identifier is another app.
  package let team: Team
  /// Names below the root of the tree.
  package var path: [[UInt8]]
  package var isWritable: Bool
  package let isDirectory: Bool
  /// What was there when it was last looked at.
  package var identity: ObjectIdentity
  /// When it was granted, in seconds since 1970.
  package let granted: Int64

  package init(
    id: Int64 = 0, identifier: AppIdentifier, user: UInt32, team: Team, path: [[UInt8]], isWritable: Bool,
    isDirectory: Bool, identity: ObjectIdentity, granted: Int64
  ) {
    self.id = id
    self.identifier = identifier
    self.user = user
    self.team = team
    self.path = path
    self.isWritable = isWritable
    self.isDirectory = isDirectory
    self.identity = identity
    self.granted = granted
  }

  /// What of the tree that is.
  package var place: ScopePlace {
    ScopePlace(path, isWritable ? [.read, .write, .revocable] : [.read, .revocable], isSubtree: isDirectory)
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Fuse
internal import Glibc
package import LinuxIO
package import Store

/// What serves a volume, and how.
package struct VolumeEngine: Sendable {
  /// What people call it: the kernel's name of a filesystem, or a program's.
  package let name: String
  /// By which its program is told to end; nil for a directory.
  package let life: SharedFD?
  /// Whether objects are found again by handles.
  package let usesHandles: Bool
  /// Whether ACLs and flags can be kept there; what has none of its own there is not asked for any.
  package let keepsAttributes: Bool
  /// Whether attributes of users can be; some programs answer EIO instead.
  package let keepsUserAttributes: Bool
  /// Whether owners are what its files say, and not whoever comes.
  package let keepsOwners: Bool
  package let isReadOnly: Bool
  /// Whether the kernel may read and write its files itself.
  package let passesThrough: Bool
  /// Whether nobody else changes what is on it.
  package let isAlone: Bool
  /// Whether each spelling is a name of its own, or what has several is one object by all of them.
  package let hasExactNames: Bool
  /// Whether what it says of a file that is opened is as of then, and so tells of others' changes.
  var tellsChanges: Bool { queue != nil && !["rclone", "glusterfs"].contains(name) }
  /// For what may not answer.
  package let queue: RequestQueue?
  /// Whether no program on it may be started.
  package let forbidsPrograms: Bool
  /// Whether a server gets what is written only some time after it was closed.
  package let uploadsLater: Bool

  package init(
    name: String, life: SharedFD? = nil, usesHandles: Bool, keepsAttributes: Bool = true,
    keepsUserAttributes: Bool = true,
    keepsOwners: Bool, isReadOnly: Bool, passesThrough: Bool, isAlone: Bool = false,
    hasExactNames: Bool = false,
    queue: RequestQueue? = nil,
    forbidsPrograms: Bool = false, uploadsLater: Bool = false
  ) {
    self.name = name
    self.life = life
    self.usesHandles = usesHandles
    self.keepsAttributes = keepsAttributes
    self.keepsUserAttributes = keepsUserAttributes
    self.keepsOwners = keepsOwners
    self.isReadOnly = isReadOnly
    self.passesThrough = passesThrough
    self.isAlone = isAlone
    self.hasExactNames = hasExactNames
    self.queue = queue
    self.forbidsPrograms = forbidsPrograms
    self.uploadsLater = uploadsLater
  }

  /// Corresponds to `ST_NOEXEC`.
  private static let noPrograms: UInt = 8

  /// A directory of a disk that is the machine's.
  package static func directory(_ record: VolumeRecord, _ directory: FD) throws(Errno) -> VolumeEngine {
    VolumeEngine(
      name: try directory.filesystemKind().name, usesHandles: true, keepsOwners: true,
      isReadOnly: record.isReadOnly, passesThrough: true,
      forbidsPrograms: try directory.filesystemStatus().f_flag & Self.noPrograms != 0)
  }
}

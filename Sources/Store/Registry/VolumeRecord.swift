// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// A directory outside the store that is a volume of its tree.
package struct VolumeRecord: Equatable, Sendable {
  package var id: Int64
  /// Its name in `/Volumes`.
  package let name: [UInt8]
  /// Where it lies, without links on the way.
  package let path: [UInt8]
  /// Which directory it is: another one at that path is none.
  package let identity: ObjectIdentity
  /// For whom alone it is there; nil if it is for all whom its modes let in.
  package let owner: UInt32?
  package let isReadOnly: Bool
  /// When it was added, in seconds since 1970.
  package let added: Int64

  package init(
    id: Int64 = 0, name: [UInt8], path: [UInt8], identity: ObjectIdentity, owner: UInt32?, isReadOnly: Bool,
    added: Int64
  ) {
    self.id = id
    self.name = name
    self.path = path
    self.identity = identity
    self.owner = owner
    self.isReadOnly = isReadOnly
    self.added = added
  }
}

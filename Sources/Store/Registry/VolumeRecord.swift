// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// What lies outside the store and is a volume of its tree.
package struct VolumeRecord: Equatable, Sendable {
  /// By the numbers that the registry has.
  package enum Kind: Int64, Sendable {
    /// A directory of the machine.
    case directory = 0
    /// A disk, or a file that is the image of one.
    case disk
    /// A directory of a server.
    case server
  }

  /// By the numbers that the registry has.
  package struct Options: OptionSet, Hashable, Sendable {
    package let rawValue: Int64
    package init(rawValue: Int64) { self.rawValue = rawValue }
    /// Whatever owners files have there, they count as the caller's.
    package static let ignoresOwners = Options(rawValue: 1)
    /// It is mounted when somebody first looks for it, and not with the tree.
    package static let onDemand = Options(rawValue: 2)
    /// A program without rights serves the disk, and not the kernel.
    package static let byProgram = Options(rawValue: 4)
    /// The directory has files that gocryptfs has encrypted: it is a volume while it is unlocked.
    package static let encrypted = Options(rawValue: 8)
    /// Who looks into it while it is locked waits.
    package static let waits = Options(rawValue: 16)
  }

  package var id: Int64
  /// Its name in `/Volumes`.
  package let name: [UInt8]
  package let kind: Kind
  /// Where it lies, without links on the way; of a server the URL.
  package let path: [UInt8]
  /// Which directory it is, another one at that path is none; of a disk its format's number is the handle.
  package private(set) var identity: ObjectIdentity
  /// For whom alone it is there; nil if it is for all whom its modes let in.
  package let owner: UInt32?
  package let isReadOnly: Bool
  /// When it was added, in seconds since 1970.
  package let added: Int64
  package var options: Options

  /// Whether what is decrypted of the directory is the volume, and not the directory itself.
  package var isEncrypted: Bool { kind == .directory && options.contains(.encrypted) }

  package init(
    id: Int64 = 0, name: [UInt8], kind: Kind = .directory, path: [UInt8], identity: ObjectIdentity,
    owner: UInt32?, isReadOnly: Bool, added: Int64, options: Options = []
  ) {
    self.id = id
    self.name = name
    self.kind = kind
    self.options = options
    self.path = path
    self.identity = identity
    self.owner = owner
    self.isReadOnly = isReadOnly
    self.added = added
  }

  /// The same of a disk whose format's number is known.
  package func known(by number: [UInt8]) -> VolumeRecord {
    var known = self
    known.identity = ObjectIdentity(inode: 0, handle: number, created: 0)
    return known
  }
}

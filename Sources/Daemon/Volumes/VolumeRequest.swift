// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
package import Store
internal import Volume

/// What is asked about the volumes of a tree.
package enum VolumeRequest: Equatable, Sendable {
  /// Let something be one.
  case add(VolumeWish)
  /// Which are there?
  case list
  /// Which computers are in the network?
  case network
  /// Let it be one no more; by force also while it is used. A home may be deleted then. `user` is whose it
  /// is; without one it is the caller's own, or everyone's.
  case eject(name: String, user: UInt32? = nil, force: Bool, deletesHome: Bool = false)
  /// Let nobody read an encrypted one, or any of the caller's; by force also while it is used. Those who look
  /// into it then wait, or not, as they did before if nothing is said.
  case lock(name: String?, user: UInt32? = nil, force: Bool, waits: Bool?)
  /// The password is in the pipe that comes along.
  case unlock(name: String, user: UInt32? = nil)
  /// Let one be in the tree that was not added on this machine, if it still is what somebody has seen.
  case confirm(name: String, seen: VolumeDescription)
}

/// What is to be a volume, and how.
package struct VolumeWish: Codable, Equatable, Sendable {
  package enum Source: Codable, Equatable, Sendable {
    /// The directory that comes along.
    case directory
    /// The same, in which gocryptfs has encrypted files, or may have a new disk of that size for them.
    case encrypted(waits: Bool, size: Int64? = nil)
    /// An absolute path, or UUID=... or LABEL=....
    case disk(String)
    /// A URL.
    case server(String)
  }

  package let source: Source
  /// The directory in which it gets its name; nil, as from earlier versions, stands for /Volumes.
  package let place: VolumeRecord.Place?
  /// Nil stands for its own name.
  package let name: String?
  package let isReadOnly: Bool
  package let ignoresOwners: Bool
  /// Whether it is mounted when somebody first looks for it.
  package let isOnDemand: Bool
  /// Who serves a disk; nil stands for the kernel where that may be.
  package let engine: Engine?

  package enum Engine: String, Codable, Sendable, CaseIterable {
    case kernel
    /// A program without rights.
    case program
  }

  package init(
    _ source: Source, in place: VolumeRecord.Place? = nil, name: String?, isReadOnly: Bool = false,
    ignoresOwners: Bool = false, isOnDemand: Bool = false, engine: Engine? = nil
  ) {
    self.source = source
    self.place = place
    self.name = name
    self.isReadOnly = isReadOnly
    self.ignoresOwners = ignoresOwners
    self.isOnDemand = isOnDemand
    self.engine = engine
  }
}

/// A volume as a daemon describes it.
package struct VolumeDescription: Codable, Equatable, Sendable {
  package let name: String
  /// Where it is, below the root of the tree.
  package let treePath: String
  /// "directory", "disk", "server" or "encrypted".
  package let kind: String
  /// The directory or the disk that it is, or its URL.
  package let path: String
  /// Of what kind its filesystem is, or which program serves it; nil while it is not there.
  package let filesystem: String?
  /// Whose alone it is; nil if it is for everyone.
  package let owner: UInt32?
  package let isReadOnly: Bool
  /// Whether everyone counts as the owner of what is on it.
  package let ignoresOwners: Bool
  package let isOnDemand: Bool
  /// Whether ACLs and flags are kept there; nil while it is not there.
  package let keepsAttributes: Bool?
  /// In seconds since 1970.
  package let added: Int64
  /// Why it is not there.
  package let missing: String?
  /// Whether it is mounted when somebody looks for it; of what is encrypted, whether it is locked.
  package let isWaiting: Bool
  /// Whether the kernel serves a disk; earlier daemons don't say.
  package let isKernels: Bool?
  /// Whether it was added on this machine; earlier daemons don't say.
  package var isConfirmed: Bool?

  /// Whether it still is what somebody has seen, wherever it lies and whether it is there or not.
  func isSame(as seen: VolumeDescription) -> Bool {
    treePath.hasSameBytes(as: seen.treePath) && kind == seen.kind && path.hasSameBytes(as: seen.path)
      && owner == seen.owner && isReadOnly == seen.isReadOnly && ignoresOwners == seen.ignoresOwners
      && isOnDemand == seen.isOnDemand && isKernels == seen.isKernels && added == seen.added
  }

  /// `engine` is what serves it, if it is there.
  ///
  /// `isReadOnly` is all that the store has.
  init(_ record: VolumeRecord, _ engine: VolumeEngine?, missing: String?, isReadOnly: Bool) {
    name = record.title
    treePath = String(decoding: Array(record.treePath.joined(separator: "/".utf8)), as: UTF8.self)
    path = String(decoding: record.path, as: UTF8.self)
    kind =
      switch record.kind {
      case .directory: record.isEncrypted ? "encrypted" : "directory"
      case .disk: "disk"
      case .server: "server"
      }
    filesystem = engine?.name
    owner = record.owner
    self.isReadOnly = isReadOnly || (engine?.isReadOnly ?? record.isReadOnly)
    ignoresOwners = engine.map { !$0.keepsOwners } ?? record.options.contains(.ignoresOwners)
    isOnDemand = record.options.contains(.onDemand)
    keepsAttributes = engine?.keepsAttributes
    added = record.added
    self.missing = missing
    isWaiting = engine == nil && missing == nil
    isKernels = record.kind == .disk ? !record.options.contains(.byProgram) : nil
  }
}

extension VolumeRequest: Codable {
  private enum Deed: String, Codable { case add, list, network, eject, lock, unlock, confirm }
  private enum Key: String, CodingKey { case deed, name, wish, force, waits, deletesHome, seen, user }

  package init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: Key.self)
    func user() throws -> UInt32? { try fields.decodeIfPresent(UInt32.self, forKey: .user) }
    func isSet(_ key: Key) throws -> Bool { try fields.decodeIfPresent(Bool.self, forKey: key) ?? false }
    self =
      switch try fields.decode(Deed.self, forKey: .deed) {
      case .add: .add(try fields.decode(VolumeWish.self, forKey: .wish))
      case .list: .list
      case .network: .network
      case .eject:
        .eject(
          name: try fields.decode(String.self, forKey: .name), user: try user(), force: try isSet(.force),
          deletesHome: try isSet(.deletesHome))
      case .lock:
        .lock(
          name: try fields.decodeIfPresent(String.self, forKey: .name), user: try user(),
          force: try isSet(.force),
          waits: try fields.decodeIfPresent(Bool.self, forKey: .waits))
      case .unlock: .unlock(name: try fields.decode(String.self, forKey: .name), user: try user())
      case .confirm:
        .confirm(
          name: try fields.decode(String.self, forKey: .name),
          seen: try fields.decode(VolumeDescription.self, forKey: .seen))
      }
  }

  package func encode(to encoder: any Encoder) throws {
    var fields = encoder.container(keyedBy: Key.self)
    switch self {
    case .add(let wish):
      try fields.encode(Deed.add, forKey: .deed)
      try fields.encode(wish, forKey: .wish)
    case .list: try fields.encode(Deed.list, forKey: .deed)
    case .network: try fields.encode(Deed.network, forKey: .deed)
    case .eject(let name, let user, let force, let deletes):
      try fields.encode(Deed.eject, forKey: .deed)
      try fields.encodeIfPresent(user, forKey: .user)
      try fields.encode(name, forKey: .name)
      try fields.encode(force, forKey: .force)
      try fields.encode(deletes, forKey: .deletesHome)
    case .lock(let name, let user, let force, let waits):
      try fields.encode(Deed.lock, forKey: .deed)
      try fields.encodeIfPresent(user, forKey: .user)
      try fields.encodeIfPresent(name, forKey: .name)
      try fields.encode(force, forKey: .force)
      try fields.encodeIfPresent(waits, forKey: .waits)
    case .unlock(let name, let user):
      try fields.encode(Deed.unlock, forKey: .deed)
      try fields.encodeIfPresent(user, forKey: .user)
      try fields.encode(name, forKey: .name)
    case .confirm(let name, let seen):
      try fields.encode(Deed.confirm, forKey: .deed)
      try fields.encode(name, forKey: .name)
      try fields.encode(seen, forKey: .seen)
    }
  }
}

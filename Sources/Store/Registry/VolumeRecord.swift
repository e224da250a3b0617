// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

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
    /// It is being added, and nobody has been told yet that it is there.
    package static let unfinished = Options(rawValue: 32)
    /// It is a home that is being deleted.
    package static let doomed = Options(rawValue: 64)
    /// The encrypted files are on a disk of their own.
    package static let hasDisk = Options(rawValue: 128)
  }

  package var id: Int64
  /// The directory in which it has its name, below the root of the tree.
  package let place: Place
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
    id: Int64 = 0, in place: Place = .volumes, name: [UInt8], kind: Kind = .directory, path: [UInt8],
    identity: ObjectIdentity, owner: UInt32?, isReadOnly: Bool, added: Int64, options: Options = []
  ) {
    self.id = id
    self.place = place
    self.name = name
    self.kind = kind
    self.options = options
    self.path = path
    self.identity = identity
    self.owner = owner
    self.isReadOnly = isReadOnly
    self.added = added
  }

  /// Where it is, below the root of the tree.
  package var treePath: [[UInt8]] { place.names + [name] }

  /// The same of a disk whose format's number is known.
  package func known(by number: [UInt8]) -> VolumeRecord {
    var known = self
    known.identity = ObjectIdentity(inode: 0, handle: number, created: 0)
    return known
  }
}

extension VolumeRecord {
  /// A directory in which volumes have their names.
  package enum Place: Hashable, Sendable {
    /// `/Volumes`.
    case volumes
    /// That of a computer, in `/Network/Servers`.
    case server(String)
    /// `/Network`: what the administrator of a network has for all of its machines.
    case network
    /// `/Users`: a home that lies outside of the store.
    case users

    package var isOfServer: Bool { if case .server = self { true } else { false } }

    /// Its names below the root of the tree.
    package var names: [[UInt8]] { path.parts(between: "/").map { Array($0.utf8) } }

    /// The same as the registry has it.
    package var path: String {
      switch self {
      case .volumes: "Volumes"
      case .server(let host): Self.servers + host
      case .network: "Network"
      case .users: "Users"
      }
    }

    /// Nil for what is none.
    package init?(_ path: String) {
      switch path {
      case "Volumes": self = .volumes
      case "Network": self = .network
      case "Users": self = .users
      default:
        let host = path.dropFirst(Self.servers.count)
        guard path.hasPrefix(Self.servers), !host.isEmpty, host.first != ".", !host.utf8.contains(0x2f) else {
          return nil
        }
        self = .server(String(host))
      }
    }

    private static let servers = "Network/Servers/"

    // Byte by byte: two computers whose names look alike are two.

    package static func == (one: Place, other: Place) -> Bool { one.path.hasSameBytes(as: other.path) }

    package func hash(into hasher: inout Hasher) { hasher.combine(ExactText(path)) }
  }
}

extension VolumeRecord.Place: Codable {
  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let place = Self(try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "no place for a volume")
    }
    self = place
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(path)
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO

/// A filesystem that a daemon wants to have mounted for itself alone.
package struct EngineOrder: Equatable, Sendable {
  /// Where it is, and who serves it.
  package enum Source: Equatable, Sendable {
    /// A disk, or a file that is the image of one, which the kernel serves: a path, or UUID=... or LABEL=...
    case kernel(disk: String)
    /// The same, which a program serves that has no rights.
    case program(disk: String)
    case server(ServerAddress)
    /// Files that gocryptfs has encrypted: their directory and a pipe with the password come along.
    ///
    /// If they are on a disk of their own, the directory is the root of that, and another one comes along
    /// with the configuration.
    case encrypted(hasDisk: Bool)
    /// The disk on which such files are: its image comes along open.
    ///
    /// The kernel serves it, so nobody but root may ever have been able to change it. A new one gets that
    /// size, and is formatted.
    case ownDisk(newSize: Int64?)
  }

  package let source: Source
  package let isReadOnly: Bool
  /// As whom the program runs; of root's a disk is served by one that is nobody's.
  package let user: UInt32
  package let group: UInt32
  /// Which of root's volumes it is: each gets a user of its own.
  package let number: UInt32
  /// What the disk must be by its format's number; empty if that is not known yet.
  package let identity: [UInt8]
  package init(
    source: Source, isReadOnly: Bool, user: UInt32, group: UInt32, number: UInt32, identity: [UInt8]
  ) {
    self.source = source
    self.isReadOnly = isReadOnly
    self.user = user
    self.group = group
    self.number = number
    self.identity = identity
  }

  // MARK: As a message

  /// No message is longer.
  static let mostBytes = 4096 + 64

  var bytes: [UInt8] {
    let (kind, text): (UInt8, String) =
      switch source {
      case .kernel(let disk): (0, disk)
      case .program(let disk): (1, disk)
      case .server(let address): (2, address.text)
      case .encrypted(let hasDisk): (hasDisk ? 4 : 3, "gocryptfs")
      case .ownDisk(let newSize): (5, "\(newSize ?? 0)")
      }
    return [kind, isReadOnly ? 1 : 0, UInt8(truncatingIfNeeded: identity.count)]
      + [user, group, number].flatMap(\.bytes) + identity + Array(text.utf8)
  }

  /// Nil for what is none.
  init?(_ bytes: ArraySlice<UInt8>) {
    let bytes = Array(bytes)
    let header = 15
    guard bytes.count > header, bytes.count <= Self.mostBytes, bytes.count > header + Int(bytes[2]),
      let text = String(validating: bytes[(header + Int(bytes[2]))...], as: UTF8.self),
      !text.utf8.contains(0)
    else { return nil }
    switch bytes[0] {
    case 0: source = .kernel(disk: text)
    case 1: source = .program(disk: text)
    case 2:
      guard let address = ServerAddress(text) else { return nil }
      source = .server(address)
    case 3, 4: source = .encrypted(hasDisk: bytes[0] == 4)
    case 5:
      guard let size = Int64(text), size >= 0 else { return nil }
      source = .ownDisk(newSize: size == 0 ? nil : size)
    default: return nil
    }
    isReadOnly = bytes[1] != 0
    user = UInt32(bytes[3..<7])
    group = UInt32(bytes[7..<11])
    number = UInt32(bytes[11..<15])
    identity = Array(bytes[header..<(header + Int(bytes[2]))])
  }
}

extension UInt32 {
  /// The least significant first.
  fileprivate var bytes: [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: self >> (8 * UInt32($0))) } }

  fileprivate init(_ bytes: ArraySlice<UInt8>) {
    self = bytes.reversed().reduce(0) { $0 << 8 | UInt32($1) }
  }
}

/// What has come of an order, as a message: what is served, or why it is not.
struct EngineReport: Equatable {
  /// 0 if it is there.
  var error: Int32 = 0
  /// Who serves it: the kernel's name of the filesystem, or a program's.
  var engine = ""
  /// The disk's format, and the number by which it is known.
  var identity: [UInt8] = []
  var keepsOwners = false
  /// Whether it is read-only whatever was asked for.
  var isReadOnly = false
  /// Whether what programs have closed is still on its way.
  var uploadsLater = false
  /// In words, for people.
  var reason = ""

  static let mostBytes = 4096

  var bytes: [UInt8] {
    [
      UInt8(truncatingIfNeeded: error), (keepsOwners ? 1 : 0) | (isReadOnly ? 2 : 0) | (uploadsLater ? 4 : 0),
      UInt8(truncatingIfNeeded: identity.count), UInt8(truncatingIfNeeded: engine.utf8.count),
    ] + identity.prefix(255) + engine.utf8.prefix(255) + reason.utf8.prefix(3000)
  }

  init() {}

  init(_ error: Errno, _ reason: String) {
    self.error = error.code
    self.reason = reason
  }

  init?(_ bytes: [UInt8]) {
    guard bytes.count >= 4, bytes.count >= 4 + Int(bytes[2]) + Int(bytes[3]) else { return nil }
    error = Int32(bytes[0])
    keepsOwners = bytes[1] & 1 != 0
    isReadOnly = bytes[1] & 2 != 0
    uploadsLater = bytes[1] & 4 != 0
    identity = Array(bytes[4..<(4 + Int(bytes[2]))])
    let text = bytes[(4 + Int(bytes[2]))...]
    engine = String(decoding: text.prefix(Int(bytes[3])), as: UTF8.self)
    reason = String(decoding: text.dropFirst(Int(bytes[3])), as: UTF8.self)
  }
}

/// Why a filesystem is not there.
package struct EngineFailure: Error, Sendable {
  package let error: Errno
  package let reason: String

  package init(_ error: Errno, _ reason: String) {
    self.error = error
    self.reason = reason
  }
}

/// A filesystem that is served for us.
package struct ServedEngine: Sendable {
  /// Its root.
  package let root: SharedFD
  /// The socket to who looks after the program that serves it: the program ends when nobody has that any
  /// more, and it is closed from there when the program has ended.
  package let life: SharedFD
  package let engine: String
  package let identity: [UInt8]
  package let keepsOwners: Bool
  package let isReadOnly: Bool
  /// See ``MountHelper/awaitUploads(of:seconds:)``.
  package let uploadsLater: Bool

  init(root: SharedFD, life: SharedFD, _ report: EngineReport) {
    (self.root, self.life) = (root, life)
    engine = report.engine
    identity = report.identity
    keepsOwners = report.keepsOwners
    isReadOnly = report.isReadOnly
    uploadsLater = report.uploadsLater
  }
}

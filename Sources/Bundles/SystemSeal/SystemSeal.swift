// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The seal of a system domain: all of a tree, each thing in it with its type, mode, owner, size, contents,
/// target and attributes.
///
/// As a file it is text, in one spelling only: whoever signs its bytes, or knows their digest, has sealed the
/// tree.
package struct SystemSeal: Equatable, Sendable {
  /// Where a tree has its seal and the signature of it; nothing else is in that directory, and it is not
  /// sealed itself.
  package static let directoryName = "_CodeSignature"
  package static let sealName = "SystemSeal"
  package static let signatureName = "SystemSignature"
  /// No longer file is read: more than a million things would be in it.
  package static let maximumSize = 256 << 20

  /// Which version of the system it is, in the signer's words.
  package var version: String
  /// The team that has signed it.
  package var team: String
  /// Everything, by the bytes of the paths; the first is the top itself, whose path is empty.
  package internal(set) var entries: [Entry]

  /// One thing.
  package struct Entry: Equatable, Sendable {
    package enum Kind: Equatable, Sendable {
      case directory
      case file(size: UInt64, digest: [UInt8])
      case link(target: [UInt8])
    }

    /// Relative to the top, without a slash at either end.
    package let path: [UInt8]
    package let kind: Kind
    package let mode: UInt32
    /// Zero stands for the owner of the store.
    package let uid: UInt32
    package let gid: UInt32
    /// The digest of the attributes of users that it has; nil if it has none.
    package let attributes: [UInt8]?

    package init(
      path: [UInt8], kind: Kind, mode: UInt32, uid: UInt32, gid: UInt32, attributes: [UInt8]?
    ) {
      self.path = path
      self.kind = kind
      self.mode = mode
      self.uid = uid
      self.gid = gid
      self.attributes = attributes
    }
  }

  init(version: String, team: String, sorted entries: [Entry]) {
    self.version = version
    self.team = team
    self.entries = entries
  }

  /// What is said of the thing at a path; nil if nothing is, so that there is nothing.
  package func entry(at path: [UInt8]) -> Entry? {
    var low = 0
    var high = entries.count
    while low < high {
      let middle = (low + high) / 2
      if entries[middle].path.lexicographicallyPrecedes(path) { low = middle + 1 } else { high = middle }
    }
    return low < entries.count && entries[low].path == path ? entries[low] : nil
  }

  /// The digest that stands for the whole tree.
  package func rootHash() throws(CryptoFailure) -> [UInt8] { try Digest.whole(bytes) }

  /// The digest that the bytes of a seal's file stand for.
  package static func rootHash(of bytes: [UInt8]) throws(CryptoFailure) -> [UInt8] {
    try Digest.whole(bytes)
  }
}

extension SystemSeal.Entry {
  /// The path for messages.
  package var text: String { path.isEmpty ? "the top directory" : String(decoding: path, as: UTF8.self) }
}

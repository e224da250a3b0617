// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

/// A name by what all its spellings have in common.
///
/// Almost all names are ASCII, and for those nothing is allocated: they are folded as they are read.
struct NameKey {
  let name: UnsafeBufferPointer<UInt8>
  /// The folding of a name that is not ASCII.
  private let folding: [UInt8]?
  /// The same for all spellings.
  let hash: UInt64

  /// Nil for what is no name where case makes no difference (``foldedName(_:)``).
  init?(_ name: UnsafeBufferPointer<UInt8>) {
    self.name = name
    if name.allSatisfy({ $0 < 0x80 }) {
      folding = nil
      hash = NameHash.hash(name, lowering: true)
      return
    }
    guard let folding = foldedName(name) else { return nil }
    self.folding = folding
    hash = folding.withUnsafeBufferPointer { NameHash.hash($0, lowering: false) }
  }

  /// What ``foldedName(_:)`` says.
  var folded: [UInt8] { folding ?? name.map(Self.lowered) }

  /// Tells this spelling from others.
  var spelling: UInt64 { NameHash.hash(name, lowering: false) }

  /// Whether another name is a spelling of this one.
  func isSpelled(_ other: UnsafeBufferPointer<UInt8>) -> Bool {
    if folding == nil, other.allSatisfy({ $0 < 0x80 }) {
      return other.count == name.count
        && other.indices.allSatisfy { Self.lowered(other[$0]) == Self.lowered(name[$0]) }
    }
    return foldedName(other).map { $0 == folded } ?? false
  }

  private static func lowered(_ byte: UInt8) -> UInt8 { byte &- 0x41 < 26 ? byte | 0x20 : byte }
}

/// A hash by two secrets of this process, so that nobody can choose names that meet.
enum NameHash {
  private static let secrets = (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max) | 1)

  static func hash(_ bytes: UnsafeBufferPointer<UInt8>, lowering: Bool) -> UInt64 {
    let (first, second) = secrets
    var hash = first ^ UInt64(truncatingIfNeeded: bytes.count)
    var word: UInt64 = 0
    var count = 0
    for byte in bytes {
      word = word << 8 | UInt64(lowering && byte &- 0x41 < 26 ? byte | 0x20 : byte)
      count += 1
      if count == 8 {
        hash = mixed(hash ^ word, second)
        (word, count) = (0, 0)
      }
    }
    return mixed(mixed(hash ^ word, second) ^ first, second)
  }

  /// The same for two numbers.
  static func hash(_ one: UInt64, _ other: UInt64) -> UInt64 {
    mixed(mixed(one ^ secrets.0, secrets.1) ^ other, secrets.1)
  }

  private static func mixed(_ one: UInt64, _ other: UInt64) -> UInt64 {
    let product = one.multipliedFullWidth(by: other)
    return product.high ^ product.low
  }
}

extension Zone {
  /// The spelling that rules know of a name in a directory here; nil if they know none.
  func standardName(of key: NameKey) -> [UInt8]? {
    hasStandardNames ? standardName(ofFolded: key.folded) : nil
  }
}

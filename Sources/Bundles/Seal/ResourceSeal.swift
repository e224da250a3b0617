// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import PropertyLists

/// What a seal knows of the files of a bundle: the content of `_CodeSignature/CodeResources`.
package struct ResourceSeal: Equatable, Sendable {
  /// A digest that stands for a file's contents.
  package enum Algorithm: Int, Sendable {
    case sha1 = 1
    case sha256
    case sha256Truncated
    case sha384
    case sha512

    /// How many bytes it has.
    var length: Int {
      switch self {
      case .sha1, .sha256Truncated: 20
      case .sha256: 32
      case .sha384: 48
      case .sha512: 64
      }
    }

    /// Its key in the seal.
    var key: String { self == .sha1 ? "hash" : "hash\(rawValue)" }
  }

  /// What is sealed of one object.
  package enum Content: Equatable, Sendable {
    case file(Algorithm, digest: [UInt8])
    case symlink(target: String)
    case nested(NestedSeal)
  }

  /// One sealed object.
  package struct Entry: Equatable, Sendable {
    /// Relative to ``CodeBundle/base``.
    package var path: String
    package var content: Content
    package var isOptional: Bool
    /// What the list of the first version says of it too; only for those who read no other.
    package var firstVersionDigest: [UInt8]?
    package var isOptionalInFirstVersion = false
  }

  /// Ordered by the bytes of their paths.
  package var entries: [Entry]
  package var rules: SealRules
  /// Whether it has the list of the second version; the first one's knows only SHA-1.
  package var isSecondVersion: Bool
  package var firstVersionRules: SealRules

  /// The entry for a path.
  func entry(for path: String) -> Entry? {
    let place = place(of: path)
    return place.isEntry ? entries[place.index] : nil
  }

  /// Where a path is among the entries, or would be.
  func place(of path: String) -> (index: Int, isEntry: Bool) {
    let index = firstIndex(from: path)
    return (index, index < entries.count && entries[index].path.hasSameBytes(as: path))
  }

  /// Whether something is sealed in a directory, or in one below it.
  func hasEntry(in directory: String) -> Bool {
    let place = directory + "/"
    let index = firstIndex(from: place)
    return index < entries.count && entries[index].path.utf8.starts(with: place.utf8)
  }

  /// Where the first entry is that does not come before a path.
  private func firstIndex(from path: String) -> Int {
    var low = 0
    var high = entries.count
    while low < high {
      let middle = (low + high) / 2
      if entries[middle].path.precedes(path) { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

/// Why a bundle can't be sealed.
package struct SealRefusal: Error, Equatable, Sendable {
  /// All that is in the way, ordered by path; never empty.
  package let findings: [Finding]
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Which names of a tree are one name: the one answer for scopes, grants and all that compares paths.
///
/// Where a store ignores case, all spellings of a name are one. But names on a volume, and in a home that is
/// elsewhere, are compared as their disk does: there each spelling is a name of its own.
package struct TreeNames: Sendable {
  package let ignoresCase: Bool
  private let disk: @Sendable ([[UInt8]]) -> Bool

  /// The root of a disk has at most so many names.
  package static let deepestDisk = 4
  /// Each spelling is a name of its own, everywhere.
  package static let bytes = TreeNames(ignoringCase: false)

  /// `isDisk` says whether a path, whose names are folded, is that of the root of a disk.
  package init(
    ignoringCase: Bool, isDisk: @escaping @Sendable (_ folded: [[UInt8]]) -> Bool = { _ in false }
  ) {
    ignoresCase = ignoringCase
    disk = isDisk
  }

  /// What all spellings of a name have in common.
  package static func folded(_ name: [UInt8]) -> [UInt8] { foldedName(name) ?? name }

  /// Whether the names in a directory of the store are compared as its disk does.
  package func isDisk(_ path: some Collection<[UInt8]>) -> Bool {
    ignoresCase && path.count <= Self.deepestDisk && disk(path.map(Self.folded))
  }

  package func areOne(_ one: [[UInt8]], _ other: [[UInt8]]) -> Bool {
    one.count == other.count && haveOneBeginning(one, other)
  }

  /// Whether a path is that of a place, or of something in it.
  package func isPlace(_ place: [[UInt8]], atOrAbove path: [[UInt8]]) -> Bool {
    path.count >= place.count && haveOneBeginning(place, path)
  }

  private func haveOneBeginning(_ one: [[UInt8]], _ other: [[UInt8]]) -> Bool {
    var folds = ignoresCase
    for (index, (name, next)) in zip(one, other).enumerated() {
      guard name == next || folds && areOneName(name, next) else { return false }
      if folds, isDisk(one[...index]) { folds = false }
    }
    return true
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// Names that mean the same file to some, or lead somewhere else.

extension ResourceSeal.Entry {
  /// Paths go down, name by name.
  static func checkPath(_ path: String) throws(Finding) {
    for name in path.utf8.split(separator: 0x2f, omittingEmptySubsequences: false) {
      guard !name.isEmpty, !name.elementsEqual(".".utf8), !name.elementsEqual("..".utf8), !name.contains(0),
        name.count <= 255
      else { throw Finding(.badName, path) }
    }
  }
}

extension ResourceSeal {
  /// Refuses paths that differ only in case or spelling: where such names are one file, either could be the sealed one.
  static func checkSpellings(of entries: [Entry]) throws(Finding) {
    // When sorted as they are compared there, those that share directories are neighbours.
    let folded = entries.map { (key: $0.path.folded, path: $0.path) }.sorted { $0.key < $1.key }
    for (one, other) in zip(folded, folded.dropFirst()) {
      var names = zip(one.path.utf8.split(separator: 0x2f), other.path.utf8.split(separator: 0x2f))
        .makeIterator()
      while let (name, otherName) = names.next() {
        if name.elementsEqual(otherName) { continue }
        if String(Substring(name)).folded == String(Substring(otherName)).folded {
          throw Finding(.ambiguousNames, other.path, detail: one.path)
        }
        break
      }
    }
  }
}

extension String {
  /// Equal for names that a Mac takes for one.
  ///
  /// Swift compares strings as canonically equivalent, which is the other half of it.
  package var folded: String {
    var copy = self
    let plain = copy.withUTF8 { bytes -> String? in
      guard bytes.allSatisfy({ $0 < 0x80 }) else { return nil }
      return String(unsafeUninitializedCapacity: bytes.count) { lowered in
        for (index, byte) in bytes.enumerated() {
          lowered[index] = (0x41...0x5a).contains(byte) ? byte | 0x20 : byte
        }
        return bytes.count
      }
    }
    // First up, then down: some letters have two small forms, and some capitals none.
    return plain ?? uppercased().lowercased()
  }
}

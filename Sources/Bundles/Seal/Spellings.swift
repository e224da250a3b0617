// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

// Names that mean the same file to some, or lead somewhere else.

extension ResourceSeal.Entry {
  /// Paths go down, name by name, and are no longer or deeper than those of what can be installed: an
  /// optional entry need not be there.
  static func checkPath(_ path: String) throws(Finding) {
    // Along the bytes, since there are tens of thousands of paths: where the name began, and whether it has
    // only dots.
    var length = 0
    var dots = 0
    var isGood = true
    var depth = 0
    func endName() { if length == 0 || length > 255 || dots == length && length <= 2 { isGood = false } }
    for byte in path.utf8 {
      if byte == 0x2f {
        depth += 1
        endName()
        (length, dots) = (0, 0)
        continue
      }
      length += 1
      if byte == 0x2e { dots += 1 }
      if byte == 0 { isGood = false }
    }
    endName()
    guard isGood else { throw Finding(.badName, path) }
    guard depth <= SealWalk.depthLimit, path.utf8.count < SealWalk.pathLimit else {
      throw Finding(.tooDeep, path)
    }
  }
}

extension ResourceSeal {
  /// Refuses paths that differ only in case or spelling: where such names are one file, either could be the
  /// sealed one.
  static func checkSpellings(of entries: [Entry]) throws(Finding) {
    if areApart(entries) { return }
    // When sorted as they are compared there, those that share directories are neighbours.
    let folded = entries.map { (key: $0.path.folded, path: $0.path) }.inOrder { $0.key < $1.key }
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

extension ResourceSeal {
  /// Whether it is plain that all names stay apart, as in nearly every bundle; found out by hashes that
  /// nobody can foresee.
  private static func areApart(_ entries: [Entry]) -> Bool {
    // What each path, and each directory of one, is without its case; and which it is.
    var known: [Int: Int] = [:]
    known.reserveCapacity(entries.count * 2)
    var lowered: [UInt8] = []
    for entry in entries {
      lowered.removeAll(keepingCapacity: true)
      for byte in entry.path.utf8 {
        // Other letters are not folded one by one.
        guard byte < 0x80 else { return false }
        lowered.append((0x41...0x5a).contains(byte) ? byte | 0x20 : byte)
      }
      let areKnown = entry.path.utf8.withContiguousStorageIfAvailable { path in
        lowered.withUnsafeBytes { lowered in
          var folded = Hasher()
          var exact = Hasher()
          var start = 0
          while start < lowered.count {
            let end = lowered[start...].firstIndex(of: 0x2f) ?? lowered.count
            folded.combine(bytes: UnsafeRawBufferPointer(rebasing: lowered[start..<end]))
            exact.combine(bytes: UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: path[start..<end])))
            folded.combine(end - start)
            exact.combine(end - start)
            let (one, other) = (folded.finalizedCopy, exact.finalizedCopy)
            if let before = known.updateValue(other, forKey: one), before != other { return false }
            start = end + 1
          }
          return true
        }
      }
      guard areKnown == true else { return false }
    }
    return true
  }
}

extension Hasher {
  /// The hash of what came so far.
  fileprivate var finalizedCopy: Int {
    let copy = self
    return copy.finalize()
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

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
  ///
  /// By hashes that nobody can foresee: copies of paths would be as long as all of them together.
  static func checkSpellings(of entries: [Entry]) throws(Finding) {
    // What each path, and each directory of one, is as it is compared there; and which it is.
    var known: [Int: Int] = [:]
    known.reserveCapacity(entries.count * 2)
    for entry in entries {
      var ambiguous: Spelling?
      spellings(of: entry.path) { spelling in
        if let before = known.updateValue(spelling.exact, forKey: spelling.folded),
          before != spelling.exact
        {
          ambiguous = spelling
        }
        return ambiguous == nil
      }
      guard let ambiguous else { continue }
      let other = entries.first { other in
        var isIt = false
        spellings(of: other.path) { spelling in
          isIt = spelling.folded == ambiguous.folded && spelling.exact != ambiguous.exact
          return !isIt
        }
        return isIt
      }
      throw Finding(.ambiguousNames, entry.path, detail: other?.path ?? "")
    }
  }

  private struct Spelling {
    let folded: Int
    let exact: Int
  }

  /// Those of the directories of a path, from the top on, and of the path itself, until `goesOn` says no.
  private static func spellings(of path: String, _ goesOn: (Spelling) -> Bool) {
    var path = path
    path.withUTF8 { bytes in
      var folded = Hasher()
      var exact = Hasher()
      var start = 0
      while start <= bytes.count {
        let end = bytes[start...].firstIndex(of: 0x2f) ?? bytes.count
        let name = UnsafeBufferPointer(rebasing: bytes[start..<end])
        // Texts that are canonically equivalent have one hash.
        folded.combine(String(decoding: name, as: UTF8.self).folded)
        exact.combine(bytes: UnsafeRawBufferPointer(name))
        exact.combine(name.count)
        guard goesOn(Spelling(folded: folded.finalizedCopy, exact: exact.finalizedCopy)) else { return }
        start = end + 1
      }
    }
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

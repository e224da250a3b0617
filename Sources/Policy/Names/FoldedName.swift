// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// Swift's own library can normalize text, and swift-foundation uses it in this way too; tables of our own
// would be 20 KB of the same.
@_spi(_Unicode) import Swift

// Which names are one name where case and normalization make no difference, as on APFS: those whose full case
// foldings of their canonical decompositions are equal (Unicode, D145).

/// What all spellings of a name have in common, as UTF-8; nil for what is no name where case makes no
/// difference.
///
/// That is what is not UTF-8, has code points that stand for nothing (which a later version of Unicode may
/// fold), or more combining marks in a row than any text has.
package func foldedName(_ name: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
  var isASCII = true
  let folded = [UInt8](unsafeUninitializedCapacity: name.count) { buffer, count in
    for byte in name {
      guard byte < 0x80 else {
        isASCII = false
        return
      }
      buffer.initializeElement(at: count, to: byte &- 0x41 < 26 ? byte | 0x20 : byte)
      count += 1
    }
  }
  return isASCII ? folded : foldedText(name)
}

package func foldedName(_ name: [UInt8]) -> [UInt8]? { name.withUnsafeBufferPointer { foldedName($0) } }

/// Whether two names are one where case and normalization make no difference.
package func areOneName(_ one: [UInt8], _ other: [UInt8]) -> Bool {
  one == other || foldedName(one).map { $0 == foldedName(other) } == true
}

/// The most combining marks in a row, as in Unicode's stream-safe text.
private let mostMarks = 30

private func foldedText(_ name: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
  guard let text = String(validating: name, as: UTF8.self) else { return nil }
  var scalars: [Unicode.Scalar] = []
  var marks = 0
  for scalar in text._nfd {
    guard scalar.properties.generalCategory != .unassigned else { return nil }
    scalars.append(scalar)
    let order = scalar.properties.canonicalCombiningClass
    marks = order == .notReordered ? 0 : marks + 1
    guard marks <= mostMarks else { return nil }
    // The library leaves marks as they are after one that is made of two itself, of which Tibetan has three.
    var index = scalars.count - 1
    let first = scalars.count - marks
    while index > first, scalars[index - 1].properties.canonicalCombiningClass > order {
      scalars.swapAt(index, index - 1)
      index -= 1
    }
  }
  var folded: [UInt8] = []
  folded.reserveCapacity(name.count + 8)
  for scalar in scalars {
    if scalar.properties.changesWhenCaseFolded {
      scalar.appendFolded(to: &folded)
    } else {
      folded += String(scalar).utf8
    }
  }
  return folded
}

extension Unicode.Scalar {
  /// Its full case folding, which is the small letters of its capital ones, but for three exceptions.
  fileprivate func appendFolded(to bytes: inout [UInt8]) {
    switch value {
    // Cherokee folds to capital letters, which it had first; and the capital sharp s to what the small one
    // does.
    case 0x13F8...0x13FD: append(value - 8, to: &bytes)
    case 0xAB70...0xABBF: append(value - 0xAB70 + 0x13A0, to: &bytes)
    case 0x1E9E: bytes += "ss".utf8
    default:
      for capital in properties.uppercaseMapping.unicodeScalars {
        bytes += capital.properties.lowercaseMapping.utf8
      }
    }
  }

  private func append(_ value: UInt32, to bytes: inout [UInt8]) {
    if let scalar = Unicode.Scalar(value) { bytes += String(scalar).utf8 }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The way to a value from the outermost one; the list that errors want is made when one asks for it.
indirect enum CodingPath {
  case start
  case key(any CodingKey, after: CodingPath)

  static func index(_ index: Int, after path: CodingPath) -> CodingPath {
    .key(PositionKey(intValue: index), after: path)
  }

  var keys: [any CodingKey] {
    var keys: [any CodingKey] = []
    var path = self
    while case .key(let key, let before) = path {
      keys.append(key)
      path = before
    }
    return keys.reversed()
  }
}

/// The key of an element of an array, and of the part that a superclass encodes.
struct PositionKey: CodingKey {
  static let superclass = PositionKey(stringValue: "super")

  let stringValue: String
  let intValue: Int?

  init(stringValue: String) {
    self.stringValue = stringValue
    intValue = nil
  }

  init(intValue: Int) {
    stringValue = "Index \(intValue)"
    self.intValue = intValue
  }
}

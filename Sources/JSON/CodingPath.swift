// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The way to a value from the outermost one; the list that errors want is made when one asks for it.
indirect enum CodingPath {
  case start
  case key(any CodingKey, after: CodingPath)

  static func index(_ index: Int, after path: CodingPath) -> CodingPath {
    .key(PositionKey.index(index), after: path)
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
///
/// Its text is made when somebody asks: each element has such a key, and hardly any has an error.
enum PositionKey: CodingKey {
  case index(Int)
  case superclass

  init?(stringValue: String) {
    guard stringValue == "super" else { return nil }
    self = .superclass
  }

  init(intValue: Int) { self = .index(intValue) }

  var stringValue: String {
    switch self {
    case .index(let index): "Index \(index)"
    case .superclass: "super"
    }
  }

  var intValue: Int? { if case .index(let index) = self { index } else { nil } }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc

/// A property list, as Info.plist, CodeResources and entitlements are.
package enum PropertyList: Sendable {
  case dictionary(Dictionary)
  case array([PropertyList])
  case string(String)
  case data([UInt8])
  case integer(Int64)
  /// Only for numbers that an `integer` can't hold.
  case unsigned(UInt64)
  case real(Double)
  case boolean(Bool)
  /// Seconds since the start of 2001, UTC.
  case date(Double)
  /// A reference in a keyed archive.
  case uid(UInt64)
}

extension PropertyList {
  /// Keys and values, ordered by the bytes of the keys.
  ///
  /// Keys are distinguished by their bytes: two spellings of one letter are two keys, though Swift calls the
  /// strings equal.
  package struct Dictionary: Sendable {
    package private(set) var entries: [(key: String, value: PropertyList)]

    /// An empty one.
    package init() { entries = [] }

    /// Takes the entries in any order; nil if a key is there twice.
    package init?(_ entries: [(key: String, value: PropertyList)]) {
      var isSorted = true
      for index in entries.indices.dropFirst()
      where !entries[index - 1].key.precedes(entries[index].key) {
        isSorted = false
        break
      }
      guard !isSorted else {
        self.entries = entries
        return
      }
      let sorted = entries.sorted { $0.key.precedes($1.key) }
      for index in sorted.indices.dropFirst() where !sorted[index - 1].key.precedes(sorted[index].key) {
        return nil
      }
      self.entries = sorted
    }

    /// Sets to nil remove the key.
    package subscript(key: String) -> PropertyList? {
      get {
        let index = position(of: key)
        guard index < entries.count, entries[index].key.hasSameBytes(as: key) else { return nil }
        return entries[index].value
      }
      set {
        let index = position(of: key)
        let isThere = index < entries.count && entries[index].key.hasSameBytes(as: key)
        switch (isThere, newValue) {
        case (true, let value?): entries[index].value = value
        case (true, nil): entries.remove(at: index)
        case (false, let value?): entries.insert((key, value), at: index)
        case (false, nil): break
        }
      }
    }

    /// Where the key is, or would be.
    private func position(of key: String) -> Int {
      var low = 0
      var high = entries.count
      while low < high {
        let middle = (low + high) / 2
        if entries[middle].key.precedes(key) { low = middle + 1 } else { high = middle }
      }
      return low
    }
  }
}

extension PropertyList {
  package var dictionary: Dictionary? { if case .dictionary(let value) = self { value } else { nil } }
  package var array: [PropertyList]? { if case .array(let value) = self { value } else { nil } }
  package var string: String? { if case .string(let value) = self { value } else { nil } }
  package var data: [UInt8]? { if case .data(let value) = self { value } else { nil } }
  package var boolean: Bool? { if case .boolean(let value) = self { value } else { nil } }
  package var integer: Int64? { if case .integer(let value) = self { value } else { nil } }

  /// A dictionary of entries in any order; of a key that is there twice, the last counts.
  package init(entries: [(key: String, value: PropertyList)]) {
    var dictionary = Dictionary()
    for (key, value) in entries { dictionary[key] = value }
    self = .dictionary(dictionary)
  }

  /// Whether other values are in it.
  var isContainer: Bool { dictionary != nil || array != nil }

  /// A number of any kind, as a Double.
  package var number: Double? {
    switch self {
    case .integer(let value): Double(value)
    case .unsigned(let value): Double(value)
    case .real(let value): value
    default: nil
    }
  }
}

extension PropertyList: Equatable {
  /// Equal to the byte: strings that are only canonically equivalent differ, and a NaN equals itself.
  package static func == (one: PropertyList, other: PropertyList) -> Bool {
    switch (one, other) {
    case (.dictionary(let one), .dictionary(let other)):
      one.entries.count == other.entries.count
        && zip(one.entries, other.entries).allSatisfy {
          $0.key.hasSameBytes(as: $1.key) && $0.value == $1.value
        }
    case (.array(let one), .array(let other)): one == other
    case (.string(let one), .string(let other)): one.hasSameBytes(as: other)
    case (.data(let one), .data(let other)): one == other
    case (.integer(let one), .integer(let other)): one == other
    case (.unsigned(let one), .unsigned(let other)): one == other
    case (.real(let one), .real(let other)), (.date(let one), .date(let other)):
      one == other || one.isNaN && other.isNaN
    case (.boolean(let one), .boolean(let other)): one == other
    case (.uid(let one), .uid(let other)): one == other
    default: false
    }
  }
}

extension String {
  /// Whether it comes before another by its bytes, which is also the order of its code points.
  package func precedes(_ other: String) -> Bool { order(to: other) < 0 }

  /// Whether both are spelled the same.
  package func hasSameBytes(as other: String) -> Bool {
    utf8.count == other.utf8.count && order(to: other) == 0
  }

  /// Less than zero, zero or more, as `memcmp(3)` says it.
  private func order(to other: String) -> Int {
    let order = utf8.withContiguousStorageIfAvailable { one in
      other.utf8.withContiguousStorageIfAvailable { two -> Int in
        guard let first = one.baseAddress, let second = two.baseAddress else { return one.count - two.count }
        let order = Int(memcmp(first, second, min(one.count, two.count)))
        return order == 0 ? one.count - two.count : order
      }
    }
    // Swift's own strings are always contiguous.
    if case .some(.some(let order)) = order { return order }
    return utf8.elementsEqual(other.utf8) ? 0 : utf8.lexicographicallyPrecedes(other.utf8) ? -1 : 1
  }
}

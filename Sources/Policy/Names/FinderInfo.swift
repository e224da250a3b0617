// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What `com.apple.FinderInfo` says of an object, as far as it is about how it is shown.
package struct FinderInfo: Equatable, Sendable {
  package static let attribute = "user.com.apple.FinderInfo"
  /// It has exactly this size, and one that is all zeros is none.
  package static let size = 32

  package private(set) var bytes: [UInt8]

  /// What is shown of an object, in the sixteen bits at the eighth byte.
  package enum Mark: UInt8, Sendable {
    /// In the low byte: the extension is not shown.
    case hidesExtension = 0x10
    /// In the high byte: a directory that is one document.
    case isPackage = 0x20
    /// In the high byte: the object is not shown at all.
    case isInvisible = 0x40

    fileprivate var offset: Int { self == .hidesExtension ? 9 : 8 }
  }

  /// One that says nothing.
  package init() { bytes = Array(repeating: 0, count: Self.size) }

  /// Reads the value of the attribute; one of another size says nothing.
  package init(_ value: [UInt8]) {
    self.init()
    if value.count == Self.size { bytes = value }
  }

  package subscript(mark: Mark) -> Bool {
    get { bytes[mark.offset] & mark.rawValue != 0 }
    set { bytes[mark.offset] = bytes[mark.offset] & ~mark.rawValue | (newValue ? mark.rawValue : 0) }
  }

  /// Whether it says nothing, so that there need be none.
  package var isEmpty: Bool { bytes.allSatisfy { $0 == 0 } }
}

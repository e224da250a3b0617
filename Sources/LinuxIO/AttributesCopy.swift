// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Copies extended attributes, of one object after the other.
package final class AttributesCopy {
  // As much as Linux lets there be, of names and of one value.
  private let names = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 8)
  private let value = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 8)

  package init() {}

  deinit {
    names.deallocate()
    value.deallocate()
  }

  /// Copies those whose names are wanted.
  package func copy(
    from source: FD, to target: FD, where isWanted: (Slice<UnsafeRawBufferPointer>) -> Bool
  ) throws(Errno) {
    try read(from: source, where: isWanted) { (name, value) throws(Errno) in
      try target.setAttribute(name.bytes, to: value, flags: 0)
    }
  }

  /// Hands over those whose names are wanted.
  package func read(
    from source: FD, where isWanted: (Slice<UnsafeRawBufferPointer>) -> Bool,
    _ body: (Name, UnsafeRawBufferPointer) throws(Errno) -> Void
  ) throws(Errno) {
    let length: Int
    do throws(Errno) {
      length = try source.attributeNames(into: names)
    } catch .EOPNOTSUPP {
      return
    }
    guard length > 0 else { return }
    for name in UnsafeRawBufferPointer(rebasing: names[..<length]).split(separator: 0)
    where isWanted(name) {
      try Array(name).withName { (name) throws(Errno) in
        let count: Int
        do throws(Errno) {
          count = try source.attribute(name.bytes, into: value)
        } catch .ENODATA {
          // Someone has just removed it.
          return
        }
        try body(name, UnsafeRawBufferPointer(rebasing: value[..<count]))
      }
    }
  }

  package static func set(_ name: String, to value: [UInt8], on target: FD) throws(Errno) {
    try name.withName { (name) throws(Errno) in
      try withUnsafeTemporaryAllocation(byteCount: value.count, alignment: 1) { (bytes) throws(Errno) in
        bytes.copyBytes(from: value)
        try target.setAttribute(name.bytes, to: UnsafeRawBufferPointer(bytes), flags: 0)
      }
    }
  }
}

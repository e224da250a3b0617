// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// Copies the extended attributes that go with a file.
final class AttributesCopy {
  // As much as Linux lets there be, of names and of one value.
  private let names = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 8)
  private let value = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 8)

  deinit {
    names.deallocate()
    value.deallocate()
  }

  func copy(from source: FD, to target: FD) throws(Errno) {
    let length: Int
    do throws(Errno) {
      length = try source.attributeNames(into: names)
    } catch .EOPNOTSUPP {
      return
    }
    guard length > 0 else { return }
    for name in UnsafeRawBufferPointer(rebasing: names[..<length]).split(separator: 0)
    where KeptAttributes.contains(name) {
      try Array(name).withName { (name) throws(Errno) in
        let count: Int
        do throws(Errno) {
          count = try source.attribute(name.bytes, into: value)
        } catch .ENODATA {
          // Someone has just removed it.
          return
        }
        try target.setAttribute(
          name.bytes, to: UnsafeRawBufferPointer(rebasing: value[..<count]), flags: 0)
      }
    }
  }

  static func set(_ name: String, to value: [UInt8], on target: FD) throws(Errno) {
    try name.withName { (name) throws(Errno) in
      try withUnsafeTemporaryAllocation(byteCount: value.count, alignment: 1) { (bytes) throws(Errno) in
        bytes.copyBytes(from: value)
        try target.setAttribute(name.bytes, to: UnsafeRawBufferPointer(bytes), flags: 0)
      }
    }
  }
}

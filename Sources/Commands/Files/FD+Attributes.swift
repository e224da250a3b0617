// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

extension FD {
  /// The value of an attribute, or nil if there is none.
  func attributeValue(_ name: String, limit: Int) throws(Errno) -> [UInt8]? {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: limit, alignment: 8)
    defer { buffer.deallocate() }
    do throws(Errno) {
      let count = try name.withName { (name) throws(Errno) in try attribute(name.bytes, into: buffer) }
      return Array(buffer[..<count])
    } catch {
      guard error == .ENODATA else { throw error }
      return nil
    }
  }

  /// Gives an attribute a value, or takes it away; one that is not there may be taken away.
  func setAttributeValue(_ name: String, to value: [UInt8]?) throws(Errno) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: value?.count ?? 0, alignment: 8)
    defer { buffer.deallocate() }
    buffer.copyBytes(from: value ?? [])
    do throws(Errno) {
      try name.withName { (name) throws(Errno) in
        guard value != nil else { return try removeAttribute(name.bytes) }
        try setAttribute(name.bytes, to: UnsafeRawBufferPointer(buffer), flags: 0)
      }
    } catch .ENODATA {}
  }

  /// The names of all attributes, those that are not UTF-8 with replacements.
  func attributeNames() throws(Errno) -> [String] {
    // The most that the kernel gives.
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 8)
    defer { buffer.deallocate() }
    let count = try attributeNames(into: buffer)
    return buffer[..<count].split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
  }
}

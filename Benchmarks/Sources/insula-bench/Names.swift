// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import Glibc

/// A table of file names as C strings, made once so that a timed loop does nothing but calls.
final class Names {
  private let table: UnsafeMutableBufferPointer<UnsafeMutablePointer<CChar>?>

  init(_ prefix: String, count: Int) {
    table = .allocate(capacity: count)
    for index in 0..<count { table.initializeElement(at: index, to: strdup("\(prefix)\(index)")) }
  }

  /// A table of this one name.
  init(_ name: String) {
    table = .allocate(capacity: 1)
    table.initializeElement(at: 0, to: strdup(name))
  }

  deinit {
    for name in table { free(name) }
    table.deallocate()
  }

  var count: Int { table.count }

  /// The name at an index below `count`.
  @inline(__always)
  subscript(index: Int) -> UnsafePointer<CChar> {
    guard let name = table[index] else { fatalError("out of memory for file names") }
    return UnsafePointer(name)
  }

  /// Creates each name as a file with these bytes, unless it exists.
  func create(_ bytes: [UInt8] = []) throws(Failure) {
    for index in 0..<count {
      let file = open(self[index], O_CREAT | O_WRONLY, 0o644)
      if file < 0 { throw Failure.call("open", String(cString: self[index])) }
      let written = bytes.isEmpty ? 0 : write(file, bytes, bytes.count)
      close(file)
      if written != bytes.count { throw Failure.call("write", String(cString: self[index])) }
    }
  }

  /// Removes each name that is a file.
  func unlinkAll() {
    for index in 0..<count { unlink(self[index]) }
  }
}

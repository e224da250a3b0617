// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

// Extended attributes of the very object that a descriptor names. The calls on descriptors refuse one that
// only names its object (O_PATH), so they go through its link in /proc, which leads to no other object.

extension FD {
  /// Corresponds to `getxattr(2)`: with an empty buffer it tells the size.
  package func attribute(
    _ name: UnsafePointer<CChar>, into buffer: UnsafeMutableRawBufferPointer
  ) throws(Errno) -> Int {
    try withProcPath { (path) throws(Errno) in
      try check(getxattr(path, name, buffer.baseAddress, buffer.count))
    }
  }

  /// Corresponds to `setxattr(2)`.
  package func setAttribute(
    _ name: UnsafePointer<CChar>, to value: UnsafeRawBufferPointer, flags: Int32
  ) throws(Errno) {
    try withProcPath { (path) throws(Errno) in
      try check(setxattr(path, name, value.baseAddress, value.count, flags))
    }
  }

  /// Corresponds to `listxattr(2)`: with an empty buffer it tells the size.
  package func attributeNames(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    try withProcPath { (path) throws(Errno) in
      try check(
        listxattr(path, buffer.baseAddress?.assumingMemoryBound(to: CChar.self), buffer.count))
    }
  }

  /// Corresponds to `removexattr(2)`.
  package func removeAttribute(_ name: UnsafePointer<CChar>) throws(Errno) {
    try withProcPath { (path) throws(Errno) in try check(removexattr(path, name)) }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

// A descriptor that only names its object (O_PATH) is of no use to many calls. The kernel keeps a link to the
// object of each descriptor in /proc/self/fd, which leads to no other object, whatever the names are now;
// calls that take a path go there.

extension FD {
  /// The directory of this process's own links, which is opened at first use; nil where it can't be.
  package static var ownLinks: FD? {
    let links = clx_own_links()
    return links >= 0 ? FD(links) : nil
  }

  /// Lends the link to exactly this object: a directory and the link's name in it.
  ///
  /// Starting at an open directory saves each call the walk through /proc.
  @inline(__always)
  @discardableResult
  func withOwnLink<Result: ~Copyable>(
    _ body: (_ links: Int32, _ link: UnsafePointer<CChar>) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    guard let links = Self.ownLinks?.raw else {
      return try withOwnPath { (path) throws(Errno) in try body(AT_FDCWD, path) }
    }
    var text = LinkText()
    text.append(UInt32(raw.magnitude))
    return try text.lend { (link) throws(Errno) in try body(links, link) }
  }

  /// Lends the path to exactly this object, for calls that know no directory to start at.
  @inline(__always)
  @discardableResult
  func withOwnPath<Result: ~Copyable>(
    _ body: (UnsafePointer<CChar>) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    var text = LinkText()
    text.append("/proc/self/fd/")
    text.append(UInt32(raw.magnitude))
    return try text.lend(body)
  }
}

extension FD {
  /// The path by which the object is known to the kernel at this moment, from where this process has its
  /// root.
  ///
  /// It may be another one as soon as it has been read. ENAMETOOLONG where the kernel has no room for it.
  package func ownPath() throws(Errno) -> [UInt8] {
    let room = 8192
    let path = UnsafeMutablePointer<CChar>.allocate(capacity: room)
    defer { path.deallocate() }
    let count = try withOwnLink { (links, link) throws(Errno) in
      try check(readlinkat(links, link, path, room))
    }
    guard count < room else { throw .ENAMETOOLONG }
    return UnsafeBufferPointer(start: path, count: count).map { UInt8(bitPattern: $0) }
  }
}

/// A short text on the stack, ending in a zero.
private struct LinkText {
  // "/proc/self/fd/", at most ten digits, and the zero.
  private var bytes = InlineArray<32, CChar>(repeating: 0)
  private var length = 0

  mutating func append(_ text: StaticString) {
    for unit in UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount) {
      bytes[length] = CChar(bitPattern: unit)
      length += 1
    }
  }

  mutating func append(_ number: UInt32) {
    var divisor: UInt32 = 1
    while number / divisor >= 10 { divisor *= 10 }
    while divisor > 0 {
      bytes[length] = CChar(0x30 + number / divisor % 10)
      length += 1
      divisor /= 10
    }
  }

  func lend<Result: ~Copyable>(
    _ body: (UnsafePointer<CChar>) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    try withUnsafeBytes(of: bytes) { (bytes) throws(Errno) in
      guard let base = bytes.baseAddress else { throw .EINVAL }
      return try body(base.assumingMemoryBound(to: CChar.self))
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

/// Open without access to the contents: a name for the object.
///
/// Corresponds to `O_PATH`.
package let pathOnly: Int32 = CLX_O_PATH

/// A descriptor that someone else owns; valid for as long as they keep it.
package struct FD: Hashable, Sendable {
  /// The number that the kernel knows it by.
  package let raw: Int32

  /// Names a descriptor without taking it over.
  package init(_ raw: Int32) { self.raw = raw }

  /// All that are open in this process.
  ///
  /// Each number is tried: to list /proc/self/fd takes ten times as long, and the kernel has as much to do
  /// again when the process ends.
  package static var allOpen: [FD] {
    let slots = ProcessID.field("FDSize", of: "self").flatMap { Int32($0) } ?? 1 << 20
    return (0..<max(0, slots)).map { FD($0) }.filter { clx_fcntl($0.raw, F_GETFD, 0) >= 0 }
  }

  /// Whether a program that this process becomes, or starts, does without it.
  ///
  /// Corresponds to `F_SETFD` with FD_CLOEXEC.
  package func closeOnExecution(_ isClosed: Bool) throws(Errno) {
    try check(clx_fcntl(raw, F_SETFD, isClosed ? Int(FD_CLOEXEC) : 0))
  }

  /// Stands for the working directory, for the few calls that take a whole path.
  package static let cwd = FD(AT_FDCWD)
}

/// A descriptor that is closed when its owner lets go of it.
package struct OwnedFD: ~Copyable, Sendable {
  private let raw: Int32

  /// Takes over an open descriptor.
  package init(owning raw: Int32) { self.raw = raw }

  /// The descriptor, for as long as its owner has a name.
  ///
  /// The owner must be held in a variable: one that is only the result of a call, as in
  /// `open(name).fd.status()`, is gone, and its descriptor closed, before the next call begins.
  package var fd: FD { FD(raw) }

  deinit { if !TakingOver.spares(raw) { _ = Glibc.close(raw) } }

  /// Gives the descriptor up without closing it.
  package consuming func release() -> FD {
    let fd = FD(raw)
    discard self
    return fd
  }

  /// Closes it and says whether what was written has arrived.
  ///
  /// Corresponds to `close(2)`.
  package consuming func close() throws(Errno) {
    let fd = release()
    // Linux has closed the descriptor even when it reports EINTR, so there is nothing to repeat.
    if Glibc.close(fd.raw) < 0 {
      let error = Errno.last
      if error != .EINTR { throw error }
    }
  }
}

/// One name in a directory, as the bytes that the kernel sent; valid during the call that it is passed to.
package struct Name {
  /// The bytes, ending in a zero.
  package let bytes: UnsafePointer<CChar>

  /// Wraps a C string that outlives the use of this value.
  package init(_ bytes: UnsafePointer<CChar>) { self.bytes = bytes }

  /// How many bytes it has, the closing zero not counted.
  package var length: Int { strlen(bytes) }

  /// Whether it is a name that an object can have: not empty, not `.` or `..`, no slash.
  package var isComponent: Bool {
    guard bytes[0] != 0, strchr(bytes, 0x2f) == nil else { return false }
    guard bytes[0] == 0x2e else { return true }
    return bytes[1] != 0 && !(bytes[1] == 0x2e && bytes[2] == 0)
  }

  /// The bytes without the closing zero.
  package var buffer: UnsafeBufferPointer<UInt8> {
    UnsafeRawBufferPointer(start: bytes, count: length).bindMemory(to: UInt8.self)
  }

  /// For messages: undecodable bytes are replaced.
  package var text: String { String(cString: bytes) }

  /// The directory that the descriptor itself stands for.
  package static var here: Name { Name(hereBytes) }
  nonisolated(unsafe) private static let hereBytes: UnsafePointer<CChar> = {
    let bytes = UnsafeMutablePointer<CChar>.allocate(capacity: 2)
    bytes[0] = 0x2e
    bytes[1] = 0
    return UnsafePointer(bytes)
  }()

  /// The name of the object that the descriptor itself stands for, in calls with `AT_EMPTY_PATH`.
  package static var empty: Name { Name(emptyBytes) }

  nonisolated(unsafe) private static let emptyBytes: UnsafePointer<CChar> = {
    let bytes = UnsafeMutablePointer<CChar>.allocate(capacity: 1)
    bytes.initialize(to: 0)
    return UnsafePointer(bytes)
  }()
}

extension String {
  /// Lends the string to `body` as a name.
  package func withName<Result: ~Copyable>(
    _ body: (Name) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    // The rethrowing withCString knows no typed errors; a copy on the stack's side of the heap does.
    let count = utf8.count
    let bytes = UnsafeMutablePointer<CChar>.allocate(capacity: count + 1)
    defer { bytes.deallocate() }
    var index = 0
    for unit in utf8 {
      bytes[index] = CChar(bitPattern: unit)
      index += 1
    }
    bytes[count] = 0
    return try body(Name(bytes))
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

/// Both ends of a pipe.
package struct PipeEnds: ~Copyable {
  package let read: OwnedFD
  package let write: OwnedFD

  package init(read: consuming OwnedFD, write: consuming OwnedFD) {
    self.read = read
    self.write = write
  }

  /// Keeps the reading end and closes the other, so that the end is seen when the last writer has gone.
  package consuming func takeRead() -> OwnedFD { read }

  /// Keeps the writing end and closes the other, so that who has the other end too sees ours go.
  package consuming func takeWrite() -> OwnedFD { write }
}

/// Corresponds to `pipe(2)`, both ends close-on-exec.
package func pipe() throws(Errno) -> PipeEnds {
  var ends: (Int32, Int32) = (-1, -1)
  try check(
    withUnsafeMutableBytes(of: &ends) { bytes in
      bytes.baseAddress.map { clx_pipe2($0.assumingMemoryBound(to: Int32.self), O_CLOEXEC) } ?? -1
    })
  return PipeEnds(read: OwnedFD(owning: ends.0), write: OwnedFD(owning: ends.1))
}

extension FD {
  /// Lets calls on it fail with EAGAIN that would wait.
  ///
  /// Corresponds to `fcntl(2)` with `F_SETFL`.
  package func setNonBlocking() throws(Errno) {
    let flags = try check(fcntl(raw, F_GETFL))
    try check(fcntl(raw, F_SETFL, flags | O_NONBLOCK))
  }

  /// Has calls on it wait again.
  package func setBlocking() throws(Errno) {
    let flags = try check(fcntl(raw, F_GETFL))
    try check(fcntl(raw, F_SETFL, flags & ~O_NONBLOCK))
  }

  /// How many bytes are in a pipe.
  ///
  /// Corresponds to the ioctl `FIONREAD`.
  package func unreadCount() throws(Errno) -> Int {
    var count: Int32 = 0
    try check(clx_ioctl(raw, UInt(FIONREAD), &count))
    return Int(count)
  }

  /// Writes what there is room for; how much that is.
  ///
  /// EAGAIN if there is none and the descriptor does not wait.
  package func writeAvailable(_ bytes: some Sequence<UInt8>) throws(Errno) -> Int {
    let all = Array(bytes)
    return try retrying { Glibc.write(raw, all, all.count) }
  }
}

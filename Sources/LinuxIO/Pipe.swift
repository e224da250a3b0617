// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

/// Both ends of a pipe.
package struct PipeEnds: ~Copyable {
  package let read: OwnedFD
  package let write: OwnedFD

  /// Keeps the reading end and closes the other, so that the end is seen when the last writer has gone.
  package consuming func takeRead() -> OwnedFD { read }
}

/// Corresponds to `pipe(2)`, both ends close-on-exec.
package func pipe() throws(Errno) -> PipeEnds {
  var ends: (Int32, Int32) = (-1, -1)
  let result = withUnsafeMutableBytes(of: &ends) { bytes in
    bytes.baseAddress.map { clx_pipe2($0.assumingMemoryBound(to: Int32.self), O_CLOEXEC) } ?? -1
  }
  try check(result)
  return PipeEnds(read: OwnedFD(owning: ends.0), write: OwnedFD(owning: ends.1))
}

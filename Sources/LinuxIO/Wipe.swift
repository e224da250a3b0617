// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

extension UnsafeMutableRawBufferPointer {
  /// Overwrites what lies here, also where nobody reads it any more.
  ///
  /// Corresponds to `explicit_bzero(3)`.
  package func wipe() { if let baseAddress { explicit_bzero(baseAddress, count) } }

  /// Copies what lies in `bytes` here, so that wiping both leaves nothing of it in memory.
  ///
  /// What `memcpy(3)` leaves in registers may be saved on the stack later.
  package func copyTracelessly(from bytes: UnsafeRawBufferPointer) {
    guard let baseAddress, let from = bytes.baseAddress else { return }
    clx_copy_tracelessly(baseAddress, from, Swift.min(count, bytes.count))
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc

extension UnsafeMutableRawBufferPointer {
  /// Overwrites what lies here, also where nobody reads it any more.
  ///
  /// Corresponds to `explicit_bzero(3)`.
  package func wipe() { if let baseAddress { explicit_bzero(baseAddress, count) } }
}

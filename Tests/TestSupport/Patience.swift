// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

/// How many milliseconds what must come is waited for.
///
/// No test judges speed by this: on a busy machine a disk or a processor may be away for many seconds, and
/// only what hangs for good takes as long.
package let patience: Int32 = 120_000

/// Waits until it is so; false if it never was.
package func eventually(_ isSo: () throws -> Bool) rethrows -> Bool {
  let end = monotonicNanoseconds() + UInt64(patience) * 1_000_000
  while try !isSo() {
    guard monotonicNanoseconds() < end else { return false }
    usleep(1000)
  }
  return true
}

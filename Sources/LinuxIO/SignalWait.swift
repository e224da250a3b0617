// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import CLinux
internal import Glibc

/// Waits for one of some blocked signals, but only for so long: its number, and whether a process has sent it
/// rather than the kernel; nil if none has come.
package func waitForSignal(
  of set: sigset_t, milliseconds: Int
) -> (number: Int32, isFromProcess: Bool)? {
  var (set, info) = (set, siginfo_t())
  var time = timespec(tv_sec: milliseconds / 1000, tv_nsec: milliseconds % 1000 * 1_000_000)
  let number = sigtimedwait(&set, &info, &time)
  return number > 0 ? (number, info.si_code <= 0) : nil
}

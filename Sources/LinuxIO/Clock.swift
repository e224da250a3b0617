// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

/// A clock that only goes forward.
package func monotonicNanoseconds() -> UInt64 {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
}

/// How long it is until some time by that clock; 0 when that is over.
package func millisecondsLeft(until end: UInt64) -> Int {
  // It is read once: what is over by now is less than nothing.
  let now = monotonicNanoseconds()
  return Int(clamping: (max(end, now) - now) / 1_000_000)
}

/// Has the calling thread do nothing for so long.
///
/// For what nothing tells of: whoever can be woken waits for that.
package func pauseThread(milliseconds: Int) {
  _ = Condition(()).wait(milliseconds: milliseconds) { _ in false }
}

/// The clock on the wall, which may be set: in milliseconds since 1970.
package func wallMilliseconds() -> Int64 {
  var time = timespec()
  clock_gettime(CLOCK_REALTIME, &time)
  return Int64(time.tv_sec) &* 1000 &+ Int64(time.tv_nsec / 1_000_000)
}

/// The monotonic clock in seconds and as of the last tick, which costs next to nothing; never 0.
package func coarseSeconds() -> UInt32 {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
  return UInt32(truncatingIfNeeded: time.tv_sec) | 1
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CFuse
internal import CLinux
internal import Glibc

/// Tells several clients from one.
///
/// One client's next request comes some time after the reply to its last, but for the releases and forgets that the kernel
/// sends on its own. Where requests are mostly there before they are looked for, there is more than one client.
struct Crowd {
  private var score = 0
  private static let threshold = 12
  private static let limit = 32

  var isThere: Bool { score >= Self.threshold }

  mutating func foundRequest() { score = min(score + 1, Self.limit) }
  mutating func foundNothing() { score = max(score - 2, 0) }
}

/// Tells whether polling is of use: it pays where the next request mostly comes within the time that a worker polls, and
/// where the CPU would be idle otherwise.
struct Patience {
  private static let fullCredit = 8
  /// For so many requests a worker goes to sleep at once, after polling was of no use, or in the way of others.
  private static let pause = (useless: 64, contended: 512)
  private static let pollsPerLook = 16

  private var credit = Self.fullCredit
  private var paused = 0
  private var polls = 0
  private var switches = Self.involuntarySwitches()

  mutating func isThere() -> Bool {
    if paused > 0 { paused -= 1 }
    return paused == 0
  }

  mutating func polled(found: Bool) {
    credit = found ? min(credit + 1, Self.fullCredit) : credit - 1
    if credit == 0 {
      credit = Self.fullCredit / 2
      paused = Self.pause.useless
    }
    polls += 1
    guard polls == Self.pollsPerLook else { return }
    polls = 0
    let now = Self.involuntarySwitches()
    // Being sent off the CPU again and again says that someone else has work for it.
    if now - switches > Self.pollsPerLook / 4 { paused = Self.pause.contended }
    switches = now
  }

  private static func involuntarySwitches() -> Int {
    var usage = rusage()
    getrusage(CLX_RUSAGE_THREAD, &usage)
    return usage.ru_nivcsw
  }
}

/// A clock that only goes forward.
func monotonicNanoseconds() -> UInt64 {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
}

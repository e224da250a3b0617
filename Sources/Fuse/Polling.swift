// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CFuse
internal import CLinux
internal import Glibc

/// Tells several clients from one.
///
/// A client waits for the reply before it asks again, so what comes from another thread than the one that was
/// just answered comes from another client. That alone does not make a crowd (a shell's programs take turns);
/// that it was there before the worker looked for it does. Whatever the one client sends may be there that
/// soon too: waking it can take the worker longer than it takes the client to ask again. Releases and forgets
/// don't count, nor what comes right after them: the kernel sends those on its own, and waits for none.
struct Crowd {
  private var score = 0
  private var isAfterNotice = false
  private var answered: UInt32 = 0
  private static let threshold = 8
  private static let limit = 32

  var isThere: Bool { score >= Self.threshold }

  /// A request was there before it was looked for.
  mutating func foundRequest(_ opcode: UInt32, from client: UInt32) {
    let isNotice = Wire.Opcode.isNotice(opcode)
    if !isAfterNotice, !isNotice {
      score = client == answered ? max(score - 1, 0) : min(score + 2, Self.limit)
    }
    note(isNotice, client)
  }

  /// A request came while it was waited for.
  mutating func waitedForRequest(_ opcode: UInt32, from client: UInt32) {
    note(Wire.Opcode.isNotice(opcode), client)
  }

  mutating func foundNothing() { score = max(score - 1, 0) }

  private mutating func note(_ isNotice: Bool, _ client: UInt32) {
    isAfterNotice = isNotice
    if !isNotice { answered = client }
  }
}

/// Tells whether polling is of use: it pays where the next request mostly comes within the time that a worker
/// polls, and where the CPU would be idle otherwise.
struct PollingGain {
  private static let fullCredit = 8
  /// For so many requests a worker goes to sleep at once, after polling was of no use, or in the way of
  /// others.
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

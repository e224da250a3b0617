// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// How long a process may not get on, in seconds, until something else is done meanwhile, and until it is
/// ended.
struct Patience {
  let before: UInt64
  let most: UInt64

  static let endless = Patience(before: .max, most: .max)
  /// A disk may write for minutes what it has been given at once.
  static let ofRestores = Patience(before: 60, most: 1800)

  var isEndless: Bool { before == .max }
}

/// Whether a process gets on, by what it computes, reads and writes.
struct ProcessPace {
  private struct Done {
    /// In hundredths of a second.
    var time: Int64 = 0
    var bytes: Int64 = 0
  }

  private let pid: Int32
  private var last = Done()
  private var since = monotonicNanoseconds()
  /// Less is what showing that it waits takes, or what somebody lets through who holds it up.
  private static let least = Done(time: 100, bytes: 1 << 20)

  init(_ pid: Int32) {
    self.pid = pid
    last = Self.done(by: pid)
  }

  /// For how many seconds it has done next to nothing.
  mutating func secondsWithoutProgress() -> UInt64 {
    let now = monotonicNanoseconds()
    let done = Self.done(by: pid)
    if done.time >= last.time.adding(clamped: Self.least.time)
      || done.bytes >= last.bytes.adding(clamped: Self.least.bytes)
    {
      (last, since) = (done, now)
    }
    return (now - min(since, now)) / 1_000_000_000
  }

  private static func done(by pid: Int32) -> Done {
    var done = Done()
    // The name before may have any letters.
    let words = FD.text(of: "/proc/\(pid)/stat", limit: 4096)?.parts(between: ")").last?.parts(between: " ")
    for word in (words ?? []).dropFirst(11).prefix(4) {
      done.time = done.time.adding(clamped: Int64(word) ?? 0)
    }
    for line in FD.text(of: "/proc/\(pid)/io", limit: 4096)?.parts(between: "\n") ?? [] {
      for name in ["rchar: ", "wchar: "] where line.hasPrefix(name) {
        done.bytes = done.bytes.adding(clamped: Int64(line.dropFirst(name.utf8.count)) ?? 0)
      }
    }
    return done
  }
}

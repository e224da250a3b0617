// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Synchronization

/// A thread that serves requests, as the monitor sees it.
final class ServingThread: Sendable {
  private let progress = Atomic<UInt64>(0)
  private let user = Atomic<UInt32>(0)
  private let slow = Atomic<Bool>(false)
  /// By which its CPU time is told; 0 before it runs.
  private let clock = Atomic<Int32>(0)
  private let lost = Atomic<Bool>(false)
  private let cameBack = Mutex<(@Sendable () -> Void)?>(nil)

  /// The calling thread is this one.
  func run() {
    var clock = clockid_t()
    guard pthread_getcpuclockid(pthread_self(), &clock) == 0 else { return }
    self.clock.store(clock, ordering: .relaxed)
  }

  /// It begins with a request of a user; `isSlow` says that such a request often takes long.
  @inline(__always)
  func begin(_ user: UInt32, isSlow: Bool) {
    self.user.store(user, ordering: .relaxed)
    slow.store(isSlow, ordering: .relaxed)
    progress.wrappingAdd(1, ordering: .relaxed)
  }

  @inline(__always)
  func end() { progress.wrappingAdd(1, ordering: .sequentiallyConsistent) }

  /// Odd while something is served, and another number for each.
  var number: UInt64 { progress.load(ordering: .sequentiallyConsistent) }

  /// What the last ``begin(_:isSlow:)`` said.
  var served: (user: UInt32, isSlow: Bool) {
    (user.load(ordering: .relaxed), slow.load(ordering: .relaxed))
  }

  /// Somebody else does what this thread was for: it ends as soon as it can, and calls `cameBack` then.
  func lose(_ cameBack: @escaping @Sendable () -> Void) {
    self.cameBack.withLock { $0 = cameBack }
    lost.store(true, ordering: .sequentiallyConsistent)
  }

  /// The calling thread, which is this one, ends.
  func finish() { if isLost { cameBack.withLock { $0 }?() } }

  @inline(__always)
  var isLost: Bool { lost.load(ordering: .sequentiallyConsistent) }

  /// In nanoseconds; nil if that can't be told.
  fileprivate var processorTime: UInt64? {
    var time = timespec()
    let clock = clock.load(ordering: .relaxed)
    guard clock != 0, clock_gettime(clock, &time) == 0 else { return nil }
    return UInt64(clamping: time.tv_sec) &* 1_000_000_000 &+ UInt64(clamping: time.tv_nsec)
  }
}

/// For how long a thread has not got on with what it serves.
struct StallWatch {
  /// A thread that waits in the kernel uses none of a CPU; one that is woken again and again uses little.
  private static let noise: UInt64 = 1_000_000
  /// Of what it served at the last look.
  private(set) var number: UInt64 = 0
  private var since: UInt64 = 0
  private var processorTime: UInt64 = 0

  /// Nil if it serves nothing, or something else than at the last look; `isBusy` is whether it has served
  /// since that.
  mutating func look(at thread: ServingThread, _ now: UInt64) -> (time: UInt64?, isBusy: Bool) {
    let number = thread.number
    let isServing = number & 1 == 1
    guard isServing, number == self.number else {
      defer { self.number = number }
      since = now
      processorTime = 0
      return (nil, isServing || number != self.number)
    }
    if let used = thread.processorTime, used > processorTime &+ Self.noise {
      processorTime = used
      since = now
    }
    return (now &- since, true)
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Synchronization

/// Sees to it that nobody waits behind a slow request while a worker is free.
final class Monitor: Sendable {
  private let signal: OwnedFD
  private let asleep = Atomic<Bool>(false)
  private let stopped = Atomic<Bool>(false)

  /// How long a request may take before others are let past it.
  ///
  /// Operations known to be slow let others pass at once (``Wire/Pace``); this limit is for those that turn
  /// out to be slow. A timer that ends every two milliseconds cost each request four microseconds, by what it
  /// does to the idle CPU's sleep.
  private static let tickMilliseconds: Int32 = 20
  /// After this many ticks without a request the monitor sleeps until it is woken.
  private static let idleTicks = 16

  init() throws(Errno) {
    signal = OwnedFD(owning: try check(eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))))
  }

  /// Called whenever a worker has entered a session; costs a load unless the monitor sleeps.
  func wake() {
    guard asleep.load(ordering: .relaxed), asleep.exchange(false, ordering: .acquiringAndReleasing) else {
      return
    }
    ring()
  }

  func stop() {
    stopped.store(true, ordering: .releasing)
    ring()
  }

  private func ring() {
    var one: UInt64 = 1
    _ = write(signal.fd.raw, &one, 8)
  }

  /// `giveUp` is for a worker that does not get on with the request of a number.
  func run(
    watching workers: () -> [Worker], _ slow: SlowWork, _ stalled: StalledUsers, calling reserve: Reserve,
    giveUp: (_ index: Int, _ worker: Worker, _ number: UInt64) -> Void
  ) {
    var watches = workers().map { _ in StallWatch() }
    var idle = 0
    while !stopped.load(ordering: .acquiring) {
      var moved = false
      let (all, now) = (workers(), monotonicNanoseconds())
      var quick: [UInt32: Int] = [:]
      for (index, worker) in all.enumerated() {
        let (time, isBusy) = watches[index].look(at: worker.thread, now)
        moved = moved || isBusy
        guard let time else { continue }
        let session = worker.current.withLock { $0?.served }
        session?.arm()
        reserve.call()
        let (user, isSlow) = worker.thread.served
        if time >= (isSlow ? StalledUsers.slowNanoseconds : StalledUsers.nanoseconds) {
          giveUp(index, worker, watches[index].number)
        } else if !isSlow, let session {
          quick[session.session.fileSystem.payer(of: user).user, default: 0] += 1
        }
      }
      // Whoever has half of them wait has no more.
      for (user, count) in quick where count >= max(all.count / 2, 2) { stalled.add(user) }
      slow.giveUpStalled(stalled.lose)
      if stalled.areThere { stalled.removeOld() }
      idle = moved ? 0 : idle + 1
      wait(forever: idle > Self.idleTicks, unlessBusy: all)
    }
  }

  private func wait(forever: Bool, unlessBusy workers: [Worker]) {
    var forever = forever
    if forever {
      asleep.store(true, ordering: .releasing)
      // A worker that entered a session before it could see that is seen here, for both are under its lock.
      if workers.contains(where: { $0.current.withLock { $0 != nil } }) { forever = false }
    }
    var event = pollfd(fd: signal.fd.raw, events: Int16(POLLIN), revents: 0)
    _ = Glibc.poll(&event, 1, forever ? -1 : Self.tickMilliseconds)
    asleep.store(false, ordering: .releasing)
    var value: UInt64 = 0
    _ = read(signal.fd.raw, &value, 8)
  }
}

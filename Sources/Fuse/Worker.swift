// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CFuse
internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Synchronization

/// A session in the pool: who owns it, and how many workers are in it.
final class ServedSession: Sendable {
  let session: Session
  let key: UInt64
  private let epoll: FD
  private let ended: @Sendable () -> Void
  /// Workers that are in it, plus one for the pool until the connection has ended.
  private let users = Atomic<Int>(1)
  private let isOver = Atomic<Bool>(false)
  /// Counts the times that the session was entered through epoll; the last to enter is its owner.
  private let ownership = Atomic<UInt64>(0)
  private let armed = Atomic<Bool>(true)

  init(_ session: Session, key: UInt64, epoll: FD, ended: @escaping @Sendable () -> Void) {
    self.session = session
    self.key = key
    self.epoll = epoll
    self.ended = ended
  }

  var event: epoll_event {
    epoll_event(events: EPOLLIN.rawValue | EPOLLONESHOT.rawValue, data: epoll_data_t(u64: key))
  }

  /// A worker comes in. Under the pool's lock, so that the session can't end in between.
  func enter() { users.wrappingAdd(1, ordering: .acquiringAndReleasing) }

  /// A worker goes; true for the one that finds the session over and empty.
  func leave() -> Bool { users.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue == 0 }

  /// The worker that was woken takes the session over.
  func own() -> UInt64 {
    armed.store(false, ordering: .releasing)
    return ownership.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
  }

  /// Whether the session is still this owner's alone.
  func isOwned(_ owner: UInt64) -> Bool {
    ownership.load(ordering: .acquiring) == owner && !armed.load(ordering: .acquiring)
  }

  /// Lets another worker be woken for what comes, or is there already.
  func arm() {
    guard !armed.exchange(true, ordering: .acquiringAndReleasing) else { return }
    var event = event
    _ = epoll_ctl(epoll.raw, EPOLL_CTL_MOD, session.fd.raw, &event)
  }

  /// The connection has ended: the first worker to see it takes the pool's own share back.
  func close() {
    guard !isOver.exchange(true, ordering: .acquiringAndReleasing) else { return }
    _ = epoll_ctl(epoll.raw, EPOLL_CTL_DEL, session.fd.raw, nil)
    users.wrappingSubtract(1, ordering: .acquiringAndReleasing)
  }

  /// The last worker has left. Not before: a request that is just being parked must not be answered under its feet.
  func end() {
    session.finish()
    ended()
  }
}

/// One thread's state.
final class Worker: Sendable {
  // One thread's own.
  nonisolated(unsafe) private let buffer: UnsafeMutableRawBufferPointer
  /// Odd while a request is being served; for the monitor.
  let progress = Atomic<UInt64>(0)
  let requests = Atomic<UInt64>(0)
  /// What the worker is in; for the monitor.
  let current = Mutex<ServedSession?>(nil)

  init() { buffer = .allocate(byteCount: Session.bufferSize, alignment: 4096) }
  deinit { buffer.deallocate() }

  /// Serves the session until it has nothing to do, or has ended. The caller has entered it, and leaves it afterwards.
  func serve(_ served: ServedSession, pollNanoseconds: UInt64, monitor: Monitor) {
    current.withLock { $0 = served }
    defer { current.withLock { $0 = nil } }
    monitor.wake()
    let session = served.session
    let owner = served.own()
    var crowd = Crowd()
    while true {
      switch session.receive(into: buffer) {
      case .message(let count):
        crowd.foundRequest()
        if crowd.isThere { served.arm() }
        serve(session, count)
        continue
      case .ended:
        served.close()
        return
      case .nothing:
        crowd.foundNothing()
      }
      guard served.isOwned(owner) else { return }
      guard !crowd.isThere, pollNanoseconds > 0, let count = poll(session, served, owner, pollNanoseconds)
      else {
        served.arm()
        return
      }
      serve(session, count)
    }
  }

  private func serve(_ session: Session, _ count: Int) {
    progress.wrappingAdd(1, ordering: .relaxed)
    session.process(UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]))
    progress.wrappingAdd(1, ordering: .relaxed)
    requests.wrappingAdd(1, ordering: .relaxed)
  }

  /// Looks for the next request for a while; gives its size.
  private func poll(
    _ session: Session, _ served: ServedSession, _ owner: UInt64, _ nanoseconds: UInt64
  ) -> Int? {
    let end = monotonicNanoseconds() &+ nanoseconds
    repeat {
      // The end of the connection is seen by the read that follows.
      if case .message(let count) = session.receive(into: buffer) { return count }
      guard served.isOwned(owner) else { return nil }
    } while monotonicNanoseconds() < end
    return nil
  }
}

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

/// A clock that only goes forward.
func monotonicNanoseconds() -> UInt64 {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
}

/// Sees to it that nobody waits behind a slow request while a worker is free.
final class Monitor: Sendable {
  private let signal: OwnedFD
  private let asleep = Atomic<Bool>(false)
  private let stopped = Atomic<Bool>(false)

  /// How long a request may take before others are let past it.
  private static let tickMilliseconds: Int32 = 2
  /// After this many ticks without a request the monitor sleeps until it is woken.
  private static let idleTicks = 16

  init() throws(Errno) {
    signal = OwnedFD(owning: try check(eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))))
  }

  /// Called whenever a worker has entered a session; costs a load unless the monitor sleeps.
  func wake() {
    guard asleep.load(ordering: .relaxed), asleep.exchange(false, ordering: .acquiringAndReleasing) else { return }
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

  func run(watching workers: [Worker]) {
    var seen = workers.map { $0.progress.load(ordering: .relaxed) }
    var idle = 0
    while !stopped.load(ordering: .acquiring) {
      var moved = false
      for (index, worker) in workers.enumerated() {
        let progress = worker.progress.load(ordering: .relaxed)
        let isServing = progress & 1 == 1
        if isServing, progress == seen[index] { worker.current.withLock { $0 }?.arm() }
        if isServing || progress != seen[index] { moved = true }
        seen[index] = progress
      }
      idle = moved ? 0 : idle + 1
      wait(forever: idle > Self.idleTicks, unlessBusy: workers)
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

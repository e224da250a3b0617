// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Synchronization

/// A session in the pool: who owns it, and how many workers are in it.
final class ServedSession: Sendable {
  let session: Session
  let key: UInt64
  let counter: RequestCounter?
  private let epoll: FD
  private let ended: @Sendable () -> Void
  /// Workers that are in it, plus one for the pool until the connection has ended.
  private let users = Atomic<Int>(1)
  private let isOver = Atomic<Bool>(false)
  /// Counts the times that the session was entered through epoll; the last to enter is its owner.
  private let ownership = Atomic<UInt64>(0)
  private let armed = Atomic<Bool>(true)
  /// Several clients keep it busy; workers sit in it and share what comes.
  private let crowded = Atomic<Bool>(false)
  private let lastClient = Atomic<UInt32>(0)
  private let run = Atomic<Int>(0)

  init(
    _ session: Session, key: UInt64, epoll: FD, counter: RequestCounter?,
    ended: @escaping @Sendable () -> Void
  ) {
    self.session = session
    self.key = key
    self.counter = counter
    self.epoll = epoll
    self.ended = ended
  }

  var event: epoll_event {
    epoll_event(events: EPOLLIN.rawValue | EPOLLONESHOT.rawValue, data: epoll_data_t(u64: key))
  }

  /// A worker comes in.
  ///
  /// Under the lock of ``Sessions``, so that the session can't end in between, or while the caller is in it.
  func enter() { users.wrappingAdd(1, ordering: .acquiringAndReleasing) }

  /// The same for who is not told by its descriptor that there is something to do; false if it is over.
  func enterAgain() -> Bool {
    var known = users.load(ordering: .acquiring)
    while known > 0 {
      let exchange = users.compareExchange(
        expected: known, desired: known + 1, ordering: .acquiringAndReleasing)
      if exchange.exchanged { return true }
      known = exchange.original
    }
    return false
  }

  /// How many workers are in it.
  var workers: Int { users.load(ordering: .relaxed) - 1 }

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

  var isCrowded: Bool { crowded.load(ordering: .relaxed) }

  func becomeCrowded() {
    run.store(0, ordering: .relaxed)
    crowded.store(true, ordering: .relaxed)
  }

  /// A request has come while the session is crowded.
  ///
  /// When all come from one client for a while, it is alone again.
  func noteRequest(from client: UInt32, of user: UInt32) {
    session.recentUsers.note(user)
    let whileItIsACrowd = 64
    guard lastClient.exchange(client, ordering: .relaxed) == client else {
      return run.store(0, ordering: .relaxed)
    }
    if run.wrappingAdd(1, ordering: .relaxed).newValue > whileItIsACrowd { disperse() }
  }

  func disperse() {
    crowded.store(false, ordering: .relaxed)
    session.recentUsers.forget()
  }

  /// The connection has ended: the first worker to see it takes the pool's own share back.
  func close() {
    guard !isOver.exchange(true, ordering: .acquiringAndReleasing) else { return }
    _ = epoll_ctl(epoll.raw, EPOLL_CTL_DEL, session.fd.raw, nil)
    users.wrappingSubtract(1, ordering: .acquiringAndReleasing)
  }

  /// The last worker has left.
  ///
  /// Not earlier: a request that is being parked must not be answered by another thread meanwhile.
  func end() {
    session.finish()
    ended()
  }
}

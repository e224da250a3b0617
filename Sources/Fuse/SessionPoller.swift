// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

/// Where one worker waits for requests of a crowded session, and for a signal that another session needs it.
///
/// Several workers serve one session, each with its own epoll set, and the kernel wakes one of them for each
/// request (EPOLLEXCLUSIVE). Unlike the pool's common set, nothing must be rearmed afterwards, which saves
/// one call for each request when requests queue up.
struct SessionPoller: ~Copyable {
  private let set: OwnedFD

  /// After so long without a request the crowd is over.
  private static let patienceMilliseconds: Int32 = 50

  /// What there is to do.
  enum Event {
    case request
    /// Some session in the pool's set has something to do.
    case others
    /// Nothing, for long.
    case timeout
    case stop
  }

  /// `stopping` becomes readable when the pool stops, and `pool` when a session in its set has something to
  /// do.
  init(stopping: FD, pool: FD) throws(Errno) {
    let set = OwnedFD(owning: try check(epoll_create1(O_CLOEXEC)))
    for (fd, number) in [(stopping, Self.stop), (pool, Self.others)] {
      var event = epoll_event(events: EPOLLIN.rawValue, data: epoll_data_t(u64: number))
      try check(epoll_ctl(set.fd.raw, EPOLL_CTL_ADD, fd.raw, &event))
    }
    self.set = set
  }

  private static let stop: UInt64 = 1
  private static let others: UInt64 = 2

  /// Begins to wait for the requests of a session; false where the kernel refuses.
  borrowing func take(in session: Session) -> Bool {
    var event = epoll_event(events: EPOLLIN.rawValue | EPOLLEXCLUSIVE.rawValue, data: epoll_data_t(u64: 0))
    return epoll_ctl(set.fd.raw, EPOLL_CTL_ADD, session.fd.raw, &event) == 0
  }

  borrowing func leave(_ session: Session) {
    _ = epoll_ctl(set.fd.raw, EPOLL_CTL_DEL, session.fd.raw, nil)
  }

  /// Waits for a request or the end of the connection.
  borrowing func wait() -> Event {
    var event = epoll_event()
    switch epoll_wait(set.fd.raw, &event, 1, Self.patienceMilliseconds) {
    case 0: return .timeout
    case 1 where event.data.u64 == Self.stop: return .stop
    case 1 where event.data.u64 == Self.others: return .others
    // After an interrupted wait the read that follows finds nothing.
    default: return .request
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

/// Waits for any of many descriptors, at a price that does not depend on how many there are.
///
/// Corresponds to `epoll(7)`.
package struct Poller: ~Copyable, Sendable {
  private let set: OwnedFD

  /// What is waited for besides the end of the connection.
  package enum Interest: Sendable {
    /// Something to read.
    case reading
    /// Nothing: whoever is at the other end is expected to wait.
    case nothing

    fileprivate var bits: UInt32 {
      let end = EPOLLRDHUP.rawValue
      return self == .reading ? end | EPOLLIN.rawValue : end
    }
  }

  /// What has happened to a descriptor.
  package struct Event: Sendable {
    /// The number under which it was added.
    package let number: UInt64
    package let isReadable: Bool
    /// The other end will send nothing more, or is gone.
    package let hasEnded: Bool
  }

  package init() throws(Errno) { set = OwnedFD(owning: try check(epoll_create1(O_CLOEXEC))) }

  /// Begins to wait for a descriptor, which is closed without another word.
  package func add(_ fd: FD, as number: UInt64, for interest: Interest = .reading) throws(Errno) {
    var event = epoll_event(events: interest.bits, data: epoll_data_t(u64: number))
    try check(epoll_ctl(set.fd.raw, EPOLL_CTL_ADD, fd.raw, &event))
  }

  /// Waits for something else of a descriptor than before.
  package func change(_ fd: FD, as number: UInt64, to interest: Interest) throws(Errno) {
    var event = epoll_event(events: interest.bits, data: epoll_data_t(u64: number))
    try check(epoll_ctl(set.fd.raw, EPOLL_CTL_MOD, fd.raw, &event))
  }

  /// What has happened, to at most so many; waits until there is something, or the time is over.
  package func wait(most: Int, milliseconds: Int32) throws(Errno) -> [Event] {
    var events = [epoll_event](repeating: epoll_event(), count: most)
    let count = try retrying { epoll_wait(set.fd.raw, &events, Int32(clamping: most), milliseconds) }
    return events.prefix(Int(count)).map { event in
      let ends = EPOLLRDHUP.rawValue | EPOLLHUP.rawValue | EPOLLERR.rawValue
      return Event(
        number: event.data.u64, isReadable: event.events & EPOLLIN.rawValue != 0,
        hasEnded: event.events & ends != 0)
    }
  }
}

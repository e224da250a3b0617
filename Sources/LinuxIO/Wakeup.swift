// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

/// Corresponds to `eventfd(2)`.
func eventDescriptor() throws(Errno) -> OwnedFD {
  OwnedFD(owning: try check(eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))))
}

/// Wakes a thread that waits in `poll(2)`.
///
/// Corresponds to `eventfd(2)`.
package struct Wakeup: ~Copyable, Sendable {
  private let event: OwnedFD

  package init() throws(Errno) {
    event = try eventDescriptor()
  }

  /// Readable once ``ring()`` was called.
  package var fd: FD { event.fd }

  /// Wakes whoever waits; never blocks.
  package func ring() {
    var one: UInt64 = 1
    _ = Glibc.write(event.fd.raw, &one, 8)
  }
}

/// Corresponds to `poll(2)` for reading; says which of the descriptors can be read or have ended.
package func waitForAny(of descriptors: [FD], milliseconds: Int32) throws(Errno) -> [Bool] {
  var set = descriptors.map { pollfd(fd: $0.raw, events: Int16(POLLIN), revents: 0) }
  try retrying { poll(&set, nfds_t(set.count), milliseconds) }
  return set.map { $0.revents != 0 }
}

extension FD {
  /// What has arrived, at most `limit` bytes; nil at the end.
  ///
  /// EAGAIN if there is nothing yet.
  package func readAvailable(limit: Int) throws(Errno) -> [UInt8]? {
    var chunk = [UInt8](repeating: 0, count: limit)
    let count = try retrying { Glibc.read(raw, &chunk, limit) }
    return count == 0 ? nil : Array(chunk[..<count])
  }

  /// Whether it has failed, or nobody is at its other end.
  ///
  /// Corresponds to POLLERR and POLLHUP of `poll(2)`.
  package func hasHungUp() throws(Errno) -> Bool {
    var set = [pollfd(fd: raw, events: 0, revents: 0)]
    try retrying { poll(&set, 1, 0) }
    return set[0].revents & Int16(POLLERR | POLLHUP | POLLNVAL) != 0
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

/// The numbers by which the kernel knows this process.
package enum ProcessID {
  /// Corresponds to `getpid(2)`.
  package static var own: Int32 { getpid() }

  /// Corresponds to `geteuid(2)`.
  package static var user: UInt32 { geteuid() }

  /// Corresponds to `getegid(2)`.
  package static var group: UInt32 { getegid() }

  /// The supplementary groups.
  ///
  /// Corresponds to `getgroups(2)`.
  package static var groups: [UInt32] {
    let count = getgroups(0, nil)
    guard count > 0 else { return [] }
    return [UInt32](unsafeUninitializedCapacity: Int(count)) { groups, filled in
      filled = max(0, Int(getgroups(count, groups.baseAddress)))
    }
  }

  /// Names a running process so that its end can be waited for.
  ///
  /// Corresponds to `pidfd_open(2)`.
  package static func open(_ pid: Int32) throws(Errno) -> OwnedFD {
    OwnedFD(owning: try check(clx_pidfd_open(pid, 0)))
  }
}

extension FD {
  /// Waits until there is something to read, or the other end is gone; false when the time is over.
  ///
  /// A process descriptor becomes readable when the process has ended and its descriptors are closed.
  package func waitUntilReadable(milliseconds: Int32) throws(Errno) -> Bool {
    var set = pollfd(fd: raw, events: Int16(POLLIN), revents: 0)
    return try retrying { poll(&set, 1, milliseconds) } > 0
  }
}

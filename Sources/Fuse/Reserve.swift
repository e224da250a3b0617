// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Synchronization

/// Workers in reserve, which are called when all regular workers may be waiting for a disk.
///
/// If they served all the time, requests would go from thread to thread and from CPU to CPU, which costs each
/// more than it gains.
final class Reserve: Sendable {
  private let calls: OwnedFD
  private let idle = Atomic<Int>(0)
  private let stopped = Atomic<Bool>(false)

  init() throws(Errno) {
    calls = OwnedFD(owning: try check(eventfd(0, Int32(EFD_CLOEXEC | EFD_SEMAPHORE))))
  }

  /// Calls one of those who stand by, if there is one.
  func call() {
    var free = idle.load(ordering: .relaxed)
    while free > 0 {
      let taken = idle.compareExchange(expected: free, desired: free - 1, ordering: .acquiringAndReleasing)
      if taken.exchanged { return ring(1) }
      free = taken.original
    }
  }

  /// Stands by until called; false when the pool stops.
  func wait() -> Bool {
    guard !stopped.load(ordering: .acquiring) else { return false }
    idle.wrappingAdd(1, ordering: .acquiringAndReleasing)
    var value: UInt64 = 0
    while read(calls.fd.raw, &value, 8) < 0, Errno.last == .EINTR {}
    return !stopped.load(ordering: .acquiring)
  }

  var isStopped: Bool { stopped.load(ordering: .acquiring) }

  /// Sends everyone home.
  func stop(_ workers: Int) {
    stopped.store(true, ordering: .releasing)
    ring(UInt64(workers))
  }

  private func ring(_ count: UInt64) {
    var count = count
    _ = write(calls.fd.raw, &count, 8)
  }
}

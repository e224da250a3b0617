// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Synchronization

/// A number that two processes see: odd while what one of them hammers at is closed, negative when it is to
/// stop.
final class HammerState {
  private let memory: UnsafeMutableRawPointer
  private var numbers: UnsafeMutablePointer<Atomic<Int>> {
    memory.assumingMemoryBound(to: Atomic<Int>.self)
  }
  init(_ path: String) throws {
    let file = OwnedFD(owning: try check(clx_open(path, O_RDWR | O_CREAT, 0o666)))
    try check(ftruncate(file.fd.raw, 4096))
    try check(chmod(path, 0o666))
    let memory = mmap(nil, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd.raw, 0)
    guard let memory, memory != MAP_FAILED else { throw Errno.last }
    self.memory = memory
  }
  deinit { munmap(memory, 4096) }

  func set(_ value: Int) { numbers[0].store(value, ordering: .sequentiallyConsistent) }

  /// Waits until something was allowed, or denied, since the state is this.
  func waitForAttempt(allowed: Bool, _ value: Int) -> Bool {
    var attempts = 0
    while numbers[allowed ? 1 : 2].load(ordering: .sequentiallyConsistent) != value {
      attempts += 1
      // On a busy machine the other process may have to wait for long: then there is no use in asking all the
      // time.
      if attempts < 1000 { sched_yield() } else { usleep(100) }
      if attempts > 1_000_000 { return false }
    }
    return true
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Synchronization

/// The reads and writes that are under way in what was granted, so that one who takes a grant back can wait
/// for them.
final class GrantedUse: Sendable {
  private let phase = Atomic<Int>(0)
  private let even = Atomic<Int>(0)
  private let odd = Atomic<Int>(0)
  private let draining = Atomic<Int>(0)

  /// Does something that is waited for; whether it is still granted is to be asked inside.
  func during<Result>(_ body: () throws(Errno) -> Result) throws(Errno) -> Result {
    let entered = phase.load(ordering: .sequentiallyConsistent)
    change(entered, by: 1)
    defer { change(entered, by: -1) }
    return try body()
  }

  private func change(_ phase: Int, by difference: Int) {
    if phase & 1 == 0 {
      even.wrappingAdd(difference, ordering: .sequentiallyConsistent)
    } else {
      odd.wrappingAdd(difference, ordering: .sequentiallyConsistent)
    }
  }

  private func count(_ phase: Int) -> Int {
    phase & 1 == 0
      ? even.load(ordering: .sequentiallyConsistent) : odd.load(ordering: .sequentiallyConsistent)
  }

  /// Waits for all that began before this was called.
  ///
  /// What begins meanwhile counts in the other phase, so it is not waited for; twice, since someone may have
  /// read the phase before it was last changed and not been counted yet.
  func waitForAll() {
    for _ in 0..<2 {
      let before = phase.wrappingAdd(1, ordering: .sequentiallyConsistent).oldValue
      while count(before) > 0 { usleep(100) }
    }
  }

  // MARK: Writing back

  /// From here on, what the kernel's page cache still has of files that are out of reach may be written.
  func beginDraining() { draining.wrappingAdd(1, ordering: .sequentiallyConsistent) }

  func endDraining() { draining.wrappingSubtract(1, ordering: .sequentiallyConsistent) }

  var isDraining: Bool { draining.load(ordering: .sequentiallyConsistent) > 0 }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Synchronization

/// The reads and writes that are under way in what was granted, so that one who takes a grant back can wait
/// for them.
///
/// Where nobody waits, that costs two additions and a read of a counter.
final class GrantedUse: Sendable {
  private let phase = Atomic<Int>(0)
  private let even = Atomic<Int>(0)
  private let odd = Atomic<Int>(0)
  /// How many wait.
  private let waiting = Atomic<Int>(0)
  /// How often the last of a phase has ended while somebody waited.
  private let ended = Condition(0)
  private let draining = Atomic<Int>(0)
  /// What began in this phase, or before, was waited for in vain.
  private let givenUp = Atomic<Int>(-1)

  /// Does something that is waited for; whether it is still granted is to be asked inside, and again by
  /// `isLate` if somebody has given up waiting for it.
  func during<Result>(
    isLate: () throws(Errno) -> Void = { () throws(Errno) in }, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    let entered = phase.load(ordering: .sequentiallyConsistent)
    _ = change(entered, by: 1)
    defer {
      // A waiter announces itself before it reads the count, so one of the two sees the other.
      if change(entered, by: -1) == 0, waiting.load(ordering: .sequentiallyConsistent) > 0 {
        ended.change { $0 &+= 1 }
      }
    }
    let result = try body()
    if entered <= givenUp.load(ordering: .sequentiallyConsistent) { try isLate() }
    return result
  }

  private func change(_ phase: Int, by difference: Int) -> Int {
    if phase & 1 == 0 {
      even.wrappingAdd(difference, ordering: .sequentiallyConsistent).newValue
    } else {
      odd.wrappingAdd(difference, ordering: .sequentiallyConsistent).newValue
    }
  }

  private func count(_ phase: Int) -> Int {
    phase & 1 == 0
      ? even.load(ordering: .sequentiallyConsistent) : odd.load(ordering: .sequentiallyConsistent)
  }

  /// Waits for everything that began before this call, until some time at most; false if that is over.
  ///
  /// What begins meanwhile counts in the other phase, so it is not waited for; twice, since someone may have
  /// read the phase before it was last changed and not been counted yet. What is under way may wait for ever,
  /// for a volume or for the lock of a file: nobody learns then what comes of it, unless it is granted by
  /// another way.
  func waitForAll(until end: UInt64) -> Bool {
    waiting.wrappingAdd(1, ordering: .sequentiallyConsistent)
    defer { waiting.wrappingSubtract(1, ordering: .sequentiallyConsistent) }
    for _ in 0..<2 {
      let before = phase.wrappingAdd(1, ordering: .sequentiallyConsistent).oldValue
      let left = millisecondsLeft(until: end)
      guard ended.wait(milliseconds: left, until: { _ in count(before) <= 0 }) else {
        _ = givenUp.max(before, ordering: .sequentiallyConsistent)
        return false
      }
    }
    return true
  }

  // MARK: Writing back

  /// From here on, what the kernel's page cache still has of files that are out of reach may be written.
  func beginDraining() { draining.wrappingAdd(1, ordering: .sequentiallyConsistent) }

  func endDraining() { draining.wrappingSubtract(1, ordering: .sequentiallyConsistent) }

  var isDraining: Bool { draining.load(ordering: .sequentiallyConsistent) > 0 }
}

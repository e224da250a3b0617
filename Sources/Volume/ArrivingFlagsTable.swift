// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Synchronization

/// Objects whose flags came as an attribute, from a program that copies.
///
/// Such a program is not done when it sets attributes: owner, mode, times and the final name come after, and
/// of a directory all that is in it. On a Mac it sets flags last. So for some seconds the flags do not hold
/// for the user who brought them, and in a directory for as long as that user goes on. Nothing is given away
/// by that: they may take the flags off again.
final class ArrivingFlagsTable: Sendable {
  private struct Arrival {
    let brought: ArrivingFlags
    var end: UInt64
  }
  private let arrivals = OrderedMutex<[ObjectNumber: Arrival]>(.leaf, [:])
  private let areAny = Atomic<Bool>(false)
  private let nanoseconds: UInt64

  /// The flags of more than these hold at once.
  private static let most = 4096

  init(seconds: Double) { nanoseconds = UInt64(max(0, seconds) * 1e9) }

  /// A user has brought flags for an object.
  func note(_ flags: FileFlags, for object: ObjectNumber, by user: UInt32) {
    let now = monotonicNanoseconds()
    let before = self.flags(of: object)
    let all = before?.user == user ? flags.union(before?.flags ?? []) : flags
    arrivals.withLock { arrivals in
      if arrivals.count >= Self.most { arrivals = arrivals.filter { $0.value.end > now } }
      guard arrivals.count < Self.most else { return }
      arrivals[object] = Arrival(brought: ArrivingFlags(all, of: user), end: now &+ nanoseconds)
      areAny.store(true, ordering: .releasing)
    }
  }

  /// The flags have been changed by someone who means them to hold.
  func end(_ object: ObjectNumber) { change(object) { $0 = nil } }

  /// Something has been changed in a directory; while the flags of that arrive, only their user can have done
  /// it.
  func goesOn(_ directory: ObjectNumber) {
    change(directory) { $0?.end = monotonicNanoseconds() &+ nanoseconds }
  }

  /// Those of an object that do not hold yet.
  func flags(of object: ObjectNumber) -> ArrivingFlags? {
    change(object) { _ in }?.brought
  }

  /// Changes what is noted of an object, if that is not over; gives what was noted.
  @discardableResult
  private func change(_ object: ObjectNumber, _ body: (inout Arrival?) -> Void) -> Arrival? {
    guard areAny.load(ordering: .acquiring) else { return nil }
    let now = monotonicNanoseconds()
    return arrivals.withLock { arrivals in
      guard let noted = arrivals[object] else { return nil }
      var arrival: Arrival? = noted.end > now ? noted : nil
      defer { areAny.store(!arrivals.isEmpty, ordering: .releasing) }
      guard arrival != nil else {
        arrivals[object] = nil
        return nil
      }
      body(&arrival)
      arrivals[object] = arrival
      return noted
    }
  }
}

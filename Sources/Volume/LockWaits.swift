// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Synchronization

/// Who waits for a lock, to find circles of those who wait for each other.
///
/// Only those who wait come here. An entry may outlive the waiting by a moment: then nothing stands against
/// what was waited for.
final class LockWaits: Sendable {
  /// One who waits.
  struct Ticket: Hashable {
    let number: UInt64
    let holder: LockHolder
  }
  private struct Wait {
    let object: ObjectNumber
    let style: LockTable.Style
    let range: LockRange
  }
  private struct State {
    var last: UInt64 = 0
    var waits: [LockHolder: [UInt64: Wait]] = [:]
    var replies: [ObjectIdentifier: (ticket: Ticket, object: ObjectNumber, payer: Payer)] = [:]

    mutating func end(_ ticket: Ticket) {
      waits[ticket.holder]?[ticket.number] = nil
      if waits[ticket.holder]?.isEmpty == true { waits[ticket.holder] = nil }
    }
  }
  private let state = OrderedMutex(.lockWaits, State())

  /// Notes one who is going to wait; EDEADLK if that would never end.
  ///
  /// `blocker` tells who stands against what someone else waits for. It is asked while nobody else begins to
  /// wait.
  func begin(
    _ lock: HeldLock, _ object: ObjectNumber, _ style: LockTable.Style,
    blocker: (ObjectNumber, LockRange, LockHolder) -> LockHolder?
  ) throws(Errno) -> Ticket {
    try state.withLock { (state) throws(Errno) -> Ticket in
      if style == .posix, let other = blocker(object, lock.range, lock.holder),
        Self.isCircle(lock.holder, other, state, blocker)
      {
        throw .EDEADLK
      }
      state.last &+= 1
      let ticket = Ticket(number: state.last, holder: lock.holder)
      state.waits[lock.holder, default: [:]][ticket.number] = Wait(
        object: object, style: style, range: lock.range)
      return ticket
    }
  }

  /// Whether `other` waits, over however many others, for something that `holder` has.
  ///
  /// The kernel looks as far as ten steps; so do we.
  private static func isCircle(
    _ holder: LockHolder, _ other: LockHolder, _ state: State,
    _ blocker: (ObjectNumber, LockRange, LockHolder) -> LockHolder?
  ) -> Bool {
    var next = [other]
    for _ in 0..<10 {
      var blockers: [LockHolder] = []
      for current in next.prefix(16) {
        if current == holder { return true }
        for wait in (state.waits[current] ?? [:]).values.prefix(16) where wait.style == .posix {
          if let blocker = blocker(wait.object, wait.range, current) { blockers.append(blocker) }
        }
      }
      if blockers.isEmpty { return false }
      next = blockers
    }
    return next.contains(holder)
  }

  /// From here on the one who waits can be found by their reply.
  func note(_ reply: ParkedReply, _ ticket: Ticket, _ object: ObjectNumber, _ payer: Payer) {
    state.withLock { $0.replies[ObjectIdentifier(reply)] = (ticket, object, payer) }
  }

  func object(of reply: ParkedReply) -> ObjectNumber? {
    state.withLock { $0.replies[ObjectIdentifier(reply)]?.object }
  }

  /// Whoever has this reply waits no more; gives who was charged for it, once.
  func end(_ reply: ParkedReply) -> Payer? {
    state.withLock { state in
      guard let noted = state.replies.removeValue(forKey: ObjectIdentifier(reply)) else { return nil }
      state.end(noted.ticket)
      return noted.payer
    }
  }
}

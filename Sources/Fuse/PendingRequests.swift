// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// The requests that a queue has taken and that are not done, and how many there are of each kind: there may
/// be tens of thousands, which nobody goes through for each new one.
struct PendingRequests {
  /// Each session has numbers of its own.
  struct Key: Hashable {
    let session: ObjectIdentifier
    let number: UInt64

    init(_ session: Session, _ number: UInt64) {
      self.session = ObjectIdentifier(session)
      self.number = number
    }
  }
  /// A request that was handed over and has not been answered.
  struct Pending {
    let caller: Int32
    let since: UInt64
    let isRead: Bool
    /// Whether others may wait for it.
    let holdsLocks: Bool
    var isAnswered = false
    let session: Session
    let number: UInt64
    /// What is to be done when it is served, or nobody waits for that any more; nil when that is done.
    var ended: (@Sendable () -> Void)?
    /// The request, if no thread will serve it.
    var held: WaitingRequest?

    fileprivate var isOwed: Bool { holdsLocks && isAnswered }
  }

  private var all: [Key: Pending] = [:]
  private(set) var reads = 0
  /// Those that others may have waited for, and that were given up.
  private(set) var owed = 0

  var count: Int { all.count }
  var isEmpty: Bool { all.isEmpty }

  mutating func add(_ request: Pending, _ key: Key) {
    remove(key)
    all[key] = request
    if request.isRead { reads += 1 }
    if request.isOwed { owed += 1 }
  }

  @discardableResult
  mutating func remove(_ key: Key) -> Pending? {
    guard let request = all.removeValue(forKey: key) else { return nil }
    if request.isRead { reads -= 1 }
    if request.isOwed { owed -= 1 }
    return request
  }

  mutating func removeAll(where isMeant: (Pending) -> Bool) -> [Pending] {
    all.filter { isMeant($0.value) }.keys.compactMap { remove($0) }
  }

  func isAnswered(_ key: Key) -> Bool { all[key]?.isAnswered ?? false }

  /// Notes that somebody answers it; false if that is done, or it is not there.
  mutating func answer(_ key: Key) -> Bool {
    guard all[key]?.isAnswered == false else { return false }
    all[key]?.isAnswered = true
    if all[key]?.isOwed == true { owed += 1 }
    return true
  }

  mutating func takeEnd(of key: Key) -> (@Sendable () -> Void)? {
    defer { all[key]?.ended = nil }
    return all[key]?.ended
  }

  func added(before time: UInt64) -> [Key: Pending] { all.filter { $0.value.since < time } }

  /// Whether a read waits that came before then.
  func hasRead(from time: UInt64) -> Bool {
    reads > 0 && all.values.contains { $0.isRead && $0.since < time }
  }
}

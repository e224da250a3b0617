// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Synchronization

/// How a rename comes to us that changes nothing but the spelling of a name.
///
/// Linux looks up both names, and where they are one object it has nothing to do, and does not ask. So the
/// second name must not be found. Which lookup is that one, no request says; but a rename of which a lookup
/// fails with ESTALE is begun again, and then all names are looked up again, one after the other, what is
/// renamed right before what it is renamed to.
///
///  1. A thread that is in rename(2) and looks up another spelling than the stored one gets ESTALE, once.
///  2. If it asks for that spelling again right after another one of the same name, the rename was begun
///     again, and this is the second name: it is not there.
///  3. If it asks for it again in any other way, that is a directory on the way, or what is renamed. Of a
///     directory on the way the kernel looks up that way again and nothing else, and only once. So there is
///     one more ESTALE, for a file in there, which is no directory on the way; after that everything is
///     looked up again, and what is in there right after another spelling is absent.
///  4. That ends with the rename, or with the time.
///
/// No right depends on it: the answers are for the one who asks, and no kernel keeps them. The rename is
/// judged when it comes.
final class RenameRetries: Sendable {
  /// What was looked for, and found.
  struct Lookup {
    let directory: ObjectNumber
    let stored: [UInt8]
    let asked: [UInt8]
    let object: ObjectNumber
    /// Whether it may be a directory on the way.
    let isPassage: Bool

    init(_ asked: Name, stored: Name, in directory: ObjectNumber, _ found: Entry) {
      self.directory = directory
      self.stored = Array(stored.buffer)
      self.asked = Array(asked.buffer)
      object = ObjectNumber(found.attributes.status)
      isPassage = found.attributes.status.isDirectory || found.attributes.status.isSymlink
    }

    fileprivate func isSameName(as other: Lookup) -> Bool {
      directory == other.directory && stored == other.stored
    }
  }

  enum Answer { case found, again, absent }

  private struct Retry {
    let began: UInt64
    let user: UInt32
    /// The rename, as far as it can be told from others.
    let call: String
    /// What was answered with ESTALE first, and whether it was asked for again.
    let refused: Lookup
    var isSettled = false
    /// Whether there was a second one.
    var isWhole = false
    var last: Lookup?
    /// The directories on the way, from the first one that was refused on.
    var way: [ObjectNumber] = []

    mutating func note(_ lookup: Lookup) {
      last = lookup
      if way.contains(lookup.directory), way.count < 64 { way.append(lookup.object) }
    }

    mutating func answer(_ lookup: Lookup) -> Answer {
      let isAgain = !isSettled && lookup.isSameName(as: refused) && lookup.asked == refused.asked
      if isAgain || isWhole && way.contains(lookup.directory), let last, last.isSameName(as: lookup),
        last.asked != lookup.asked
      {
        return .absent
      }
      if isSettled, !isWhole, !lookup.isPassage, way.contains(lookup.directory) {
        isWhole = true
        last = nil
        return .again
      }
      note(lookup)
      if isAgain {
        isSettled = true
        way = [lookup.object]
      }
      return .found
    }
  }
  private let threads = OrderedMutex<[Int32: Retry]>(.leaf, [:])
  private let count = Atomic<Int>(0)
  /// More than a kernel takes to begin again, on a busy machine.
  ///
  /// Until then another rename of the same thread's may be taken for this one, if this one ended without a
  /// request and both have their names in the same places of memory. Then it does nothing.
  private static let longest: UInt64 = 2_000_000_000
  /// A rename that never comes is waited for, so each user has a share of their own.
  private static let mostThreads = (ofOne: 32, ofAll: 4096)

  /// Whether anybody's lookups are to be noted.
  var areUnderWay: Bool { count.load(ordering: .relaxed) > 0 }

  /// A thread has found a name as it is stored; `call` tells which rename it is in, if it is in one.
  func note(_ lookup: Lookup, by thread: Int32, call: (Int32) -> String?) {
    guard let known = threads.withLock({ $0[thread]?.call }) else { return }
    guard call(thread) == known else { return end(thread) }
    threads.withLock { $0[thread]?.note(lookup) }
  }

  /// What a thread is told that looks up another spelling than the stored one.
  func answer(
    _ lookup: Lookup, by thread: Int32, of user: UInt32 = 0, call: (Int32) -> String?
  ) -> Answer {
    guard let call = call(thread) else {
      end(thread)
      return .found
    }
    let now = monotonicNanoseconds()
    return threads.withLock { threads in
      defer { count.store(threads.count, ordering: .relaxed) }
      if let retry = threads[thread], retry.call == call, now &- retry.began < Self.longest,
        let answer = threads[thread]?.answer(lookup)
      {
        return answer
      }
      threads = threads.filter { now &- $0.value.began < Self.longest }
      guard threads.count < Self.mostThreads.ofAll,
        threads.values.count(where: { $0.user == user }) < Self.mostThreads.ofOne
      else { return .found }
      threads[thread] = Retry(began: now, user: user, call: call, refused: lookup)
      return .again
    }
  }

  /// The thread's rename has come, or is over.
  func end(_ thread: Int32) {
    guard areUnderWay else { return }
    threads.withLock { threads in
      threads[thread] = nil
      count.store(threads.count, ordering: .relaxed)
    }
  }
}

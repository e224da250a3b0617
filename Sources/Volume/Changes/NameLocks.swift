// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Synchronization

/// In which a thread's number has room: Linux has no larger ones.
private let threadBits = 0x3f_ffff

/// Locks on the names in directories, shared by all views.
///
/// A kernel serializes changes of a directory's names and excludes lookups meanwhile, but it knows nothing of
/// the other views' kernels. So:
///
///  1. A name is removed under an exclusive lock, so that the object that the gate has judged is the one that
///     is removed.
///  2. An object that is found or created under a name keeps that name until its view has a node for it. So
///     the view learns of every later change.
///  3. A kernel looks a name up before it adds it. What such a lookup has not found stays missing until the
///     next change in the directory, which is spared a call by that. Where others make changes, too, that
///     holds for a moment and for the thread that has looked.
///
/// A thread that holds such a lock neither waits for a kernel nor takes another one.
final class NameLocks: Sendable {
  /// A lock for many directories.
  fileprivate final class Lock: Sendable {
    let lock = ReadWriteLock()
    /// The directory and the name, hashed, that the last lookup has not found, and in the lowest bits the
    /// thread that has looked, if that matters; 0 after a change.
    let missing = Atomic<Int>(0)
    /// When the thread has.
    let missed = Atomic<UInt64>(0)

    func remembers(_ hash: Int, by thread: Int32?) -> Bool {
      let known = missing.load(ordering: .relaxed)
      guard let thread else { return known | threadBits == hash | threadBits }
      let age = monotonicNanoseconds() &- missed.load(ordering: .relaxed)
      return thread > 0 && known == hash | Int(thread) && age < 50_000_000
    }

    /// What the last lookup has not found may have been added.
    func end() {
      missing.store(0, ordering: .relaxed)
      lock.unlock()
    }
  }
  private let locks = (0..<256).map { _ in Lock() }

  /// Lets `body` look for names in a directory; nobody changes any meanwhile.
  func shared<Result: ~Copyable>(
    in directory: ObjectNumber, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    LockRank.names.enter()
    defer { LockRank.names.leave() }
    return try lock(of: directory).lock.reading(body)
  }

  /// A lookup, under the shared lock, has not found a name, maybe only just now and for this thread.
  func remember(missing name: Name, in directory: ObjectNumber, by thread: Int32 = 0) {
    let lock = lock(of: directory)
    if thread > 0 { lock.missed.store(monotonicNanoseconds(), ordering: .relaxed) }
    lock.missing.store(Self.hash(name, directory) | Int(thread) & threadBits, ordering: .relaxed)
  }

  /// A lookup has found a name that others may have made.
  func forgetMissing(in directory: ObjectNumber) { lock(of: directory).missing.store(0, ordering: .relaxed) }

  /// Lets `body` make a change that nobody else makes meanwhile.
  func exclusively<Result: ~Copyable>(
    in object: ObjectNumber, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    let hold = Hold(lock(of: object), nil)
    let result = try body()
    hold.end()
    return result
  }

  /// Nobody else looks for names in the directory or changes any until the end of what this gives.
  func exclusive(in directory: ObjectNumber) -> Hold { Hold(lock(of: directory), nil) }

  /// The same in two directories.
  func exclusive(in one: ObjectNumber, _ other: ObjectNumber) -> Hold {
    let (first, second) = (index(of: one), index(of: other))
    // Locks are taken in index order, which prevents deadlocks. Two directories may share one lock.
    return Hold(locks[min(first, second)], first == second ? nil : locks[max(first, second)])
  }

  /// One lock or two, held until this ends.
  struct Hold: ~Copyable {
    private let first: Lock
    private let second: Lock?

    fileprivate init(_ first: Lock, _ second: Lock?) {
      self.first = first
      self.second = second
      LockRank.names.enter()
      first.lock.lockForWriting()
      second?.lock.lockForWriting()
    }

    /// Whether a lookup has not found a name in the directory just before, and nothing has changed since.
    ///
    /// With `thread`, where others change names: whether that was its last lookup, a moment ago.
    func remembers(missing name: Name, in directory: ObjectNumber, by thread: Int32? = nil) -> Bool {
      let hash = NameLocks.hash(name, directory)
      return first.remembers(hash, by: thread) || second?.remembers(hash, by: thread) == true
    }

    /// It ends here, and where it is left by an error.
    consuming func end() {}

    deinit {
      second?.end()
      first.end()
      LockRank.names.leave()
    }
  }

  /// A number for a name, never 0, by a secret of this process: nobody can make two names meet.
  fileprivate static func hash(_ name: Name, _ directory: ObjectNumber) -> Int {
    var hasher = Hasher()
    hasher.combine(directory)
    hasher.combine(bytes: UnsafeRawBufferPointer(name.buffer))
    return (hasher.finalize() | 1) << 22
  }

  private func lock(of directory: ObjectNumber) -> Lock { locks[index(of: directory)] }

  private func index(of directory: ObjectNumber) -> Int {
    Int((directory.inode &* 0x9e37_79b9_7f4a_7c15) >> 56) % locks.count
  }
}

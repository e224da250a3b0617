// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// Locks on the names in directories, shared by all views.
///
/// A kernel serializes changes of a directory's names and excludes lookups meanwhile, but it knows nothing of
/// the other views' kernels. So:
///
///  1. A name is removed under an exclusive lock, so that the object that the gate has judged is the one that
///     is removed.
///  2. An object that is found or created under a name keeps that name until its view has a node for it. So
///     the view learns of every later change.
///
/// A thread that holds such a lock neither waits for a kernel nor takes another one.
final class NameLocks: Sendable {
  /// Each for many directories.
  private let locks = (0..<256).map { _ in ReadWriteLock() }

  /// Lets `body` look for names in a directory; nobody changes any meanwhile.
  func shared<Result: ~Copyable>(
    in directory: ObjectNumber, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    LockRank.names.enter()
    defer { LockRank.names.leave() }
    return try lock(of: directory).reading(body)
  }

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
    private let first: ReadWriteLock
    private let second: ReadWriteLock?

    fileprivate init(_ first: ReadWriteLock, _ second: ReadWriteLock?) {
      self.first = first
      self.second = second
      LockRank.names.enter()
      first.lockForWriting()
      second?.lockForWriting()
    }

    /// It ends here, and where it is left by an error.
    consuming func end() {}

    deinit {
      second?.unlock()
      first.unlock()
      LockRank.names.leave()
    }
  }

  private func lock(of directory: ObjectNumber) -> ReadWriteLock { locks[index(of: directory)] }

  private func index(of directory: ObjectNumber) -> Int {
    Int((directory.inode &* 0x9e37_79b9_7f4a_7c15) >> 56) % locks.count
  }
}

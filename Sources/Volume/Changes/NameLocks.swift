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
  /// Directories whose numbers hash alike, each with a lock of its own: who waits for one of them in the
  /// kernel, maybe without an end, holds up nobody who works in another.
  fileprivate final class Shard: Sendable {
    private struct Entry {
      let directory: ObjectNumber
      let lock: ReadWriteLock
      /// How many have it, or wait for it.
      var users = 1
    }
    private struct State {
      var entries: [Entry] = []
      /// Locks that nobody has.
      var free: [ReadWriteLock] = []
    }
    private let state = Mutex(State())
    private static let maxFree = 4
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

    /// The lock of a directory, until ``leave(_:)``.
    func enter(_ directory: ObjectNumber) -> ReadWriteLock {
      state.withLock { state in
        for index in state.entries.indices where state.entries[index].directory == directory {
          state.entries[index].users += 1
          return state.entries[index].lock
        }
        let lock = state.free.popLast() ?? ReadWriteLock()
        state.entries.append(Entry(directory: directory, lock: lock))
        return lock
      }
    }

    func leave(_ directory: ObjectNumber) {
      state.withLock { state in
        guard let index = state.entries.firstIndex(where: { $0.directory == directory }) else { return }
        state.entries[index].users -= 1
        guard state.entries[index].users == 0 else { return }
        let lock = state.entries[index].lock
        state.entries.swapAt(index, state.entries.endIndex - 1)
        state.entries.removeLast()
        if state.free.count < Self.maxFree { state.free.append(lock) }
      }
    }
  }
  private let shards = (0..<256).map { _ in Shard() }

  /// Lets `body` look for names in a directory; nobody changes any meanwhile.
  func shared<Result: ~Copyable>(
    in directory: ObjectNumber, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    LockRank.names.enter()
    let shard = shard(of: directory)
    let lock = shard.enter(directory)
    defer {
      shard.leave(directory)
      LockRank.names.leave()
    }
    return try lock.reading(body)
  }

  /// A lookup, under the shared lock, has not found a name, maybe only just now and for this thread.
  func remember(missing name: Name, in directory: ObjectNumber, by thread: Int32 = 0) {
    let shard = shard(of: directory)
    if thread > 0 { shard.missed.store(monotonicNanoseconds(), ordering: .relaxed) }
    shard.missing.store(Self.hash(name, directory) | Int(thread) & threadBits, ordering: .relaxed)
  }

  /// A lookup has found a name that others may have made.
  func forgetMissing(in directory: ObjectNumber) { shard(of: directory).missing.store(0, ordering: .relaxed) }

  /// Lets `body` make a change that nobody else makes meanwhile.
  func exclusively<Result: ~Copyable>(
    in object: ObjectNumber, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    let hold = exclusive(in: object)
    let result = try body()
    hold.end()
    return result
  }

  /// Nobody else looks for names in the directory or changes any until the end of what this gives.
  func exclusive(in directory: ObjectNumber) -> Hold {
    Hold(shard(of: directory), directory, nil)
  }

  /// The same in two directories.
  func exclusive(in one: ObjectNumber, _ other: ObjectNumber) -> Hold {
    guard one != other else { return exclusive(in: one) }
    // In one order always, which prevents deadlocks.
    let isFirst = (one.device, one.inode) < (other.device, other.inode)
    let (first, second) = isFirst ? (one, other) : (other, one)
    return Hold(shard(of: first), first, (shard(of: second), second))
  }

  /// One lock or two, held until this ends.
  struct Hold: ~Copyable {
    private struct Held {
      let shard: Shard
      let directory: ObjectNumber
      let lock: ReadWriteLock

      init(_ shard: Shard, _ directory: ObjectNumber) {
        self.shard = shard
        self.directory = directory
        lock = shard.enter(directory)
        lock.lockForWriting()
      }

      /// What the last lookup has not found may have been added.
      func end() {
        shard.missing.store(0, ordering: .relaxed)
        lock.unlock()
        shard.leave(directory)
      }
    }
    private let first: Held
    private let second: Held?

    fileprivate init(
      _ shard: Shard, _ directory: ObjectNumber, _ other: (shard: Shard, directory: ObjectNumber)?
    ) {
      LockRank.names.enter()
      first = Held(shard, directory)
      second = other.map { Held($0.shard, $0.directory) }
    }

    /// Whether a lookup has not found a name in the directory just before, and nothing has changed since.
    ///
    /// With `thread`, where others change names: whether that was its last lookup, a moment ago.
    func remembers(missing name: Name, in directory: ObjectNumber, by thread: Int32? = nil) -> Bool {
      let hash = NameLocks.hash(name, directory)
      return first.shard.remembers(hash, by: thread) || second?.shard.remembers(hash, by: thread) == true
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

  private func shard(of directory: ObjectNumber) -> Shard {
    shards[Int((directory.inode &* 0x9e37_79b9_7f4a_7c15) >> 56) % shards.count]
  }
}

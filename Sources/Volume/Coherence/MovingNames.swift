// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Synchronization

/// Names that move from a directory in which names are cached to a closed one.
///
/// A kernel takes along for how long it may keep a name. In the closed directory it would go on to use the
/// name without asking, for users who may not search there. To have it look up all names of the view again
/// is everybody's expense: mounts are detached, and getcwd(2) fails. So the one name is withdrawn first:
///
///  1. The rename is answered with ESTALE before anything has changed. Linux then begins rename(2) again,
///     once, and looks up every name in it, also those that it has cached.
///  2. From then on no kernel may keep that name, until the rename has been made or the time is over.
///  3. If the thread has looked up the name when its rename comes again, nothing is kept of the name.
///  4. Somebody else's answer from before that could still be under way, and arrive after it. While the
///     kernel renames something, nobody adds a name to the two directories; so it can only be an answer about
///     a name that the kernel had already. Those are noted, with the thread that has asked, which has the
///     answer if it has ended, or asks for something else.
///
/// Where one of these does not hold, all names are looked up again.
final class MovingNames: Sendable {
  struct Move: Equatable {
    let directory: ObjectNumber
    let name: [UInt8]
    let newDirectory: ObjectNumber
    let newName: [UInt8]
  }

  enum Answer { case again, withdrawn, refused }

  private struct Rename {
    let began: UInt64
    let user: UInt32
    /// The system call, as far as it can be told from others.
    let call: String
    let move: Move
    /// Whether the name has been looked up since.
    var isLookedUp = false
  }
  private struct Told {
    var time: UInt32 = 0
    var object = ObjectNumber(inode: 0, device: 0)
    /// 0 for several.
    var thread: Int32 = 0
  }
  private struct State {
    var renames: [Int32: Rename] = [:]
    /// Empty until there is one.
    var told: [Told] = []
    /// To whom ESTALE was said of something else, so that Linux would not begin again.
    var stale: [Int32: UInt64] = [:]
  }
  private let state = OrderedMutex(.leaf, State())
  private let count = Atomic<Int>(0)

  private static let places = 1024
  /// More than a kernel takes to begin again, on a busy machine.
  private static let longest: UInt64 = 10_000_000_000
  /// How long an answer may be under way.
  private static let arrivalSeconds: UInt32 = 10
  /// A rename that never comes is waited for, so each user has a share of their own.
  private static let maxRenames = (ofOne: 32, ofAll: 512)
  /// When this began, if another worker has answered before.
  private let since: UInt32

  init(isTakingOver: Bool) { since = isTakingOver ? coarseSeconds() : 0 }

  // MARK: Renames

  /// What to do about a rename of an object that a kernel knows by the name.
  ///
  /// `call` tells which rename(2) a thread is in, if it is in one.
  func answer(
    _ move: Move, of object: ObjectNumber, by thread: Int32, of user: UInt32, call: (Int32) -> String?
  ) -> Answer {
    guard thread > 0, !isUnderWay(object, besides: thread), let call = call(thread) else {
      end(thread)
      return .refused
    }
    let now = monotonicNanoseconds()
    return state.withLock { state in
      defer { count.store(state.renames.count, ordering: .relaxed) }
      if let known = state.renames.removeValue(forKey: thread), known.call == call, known.move == move {
        return known.isLookedUp && now - known.began < Self.longest ? .withdrawn : .refused
      }
      state.renames = state.renames.filter { now - $0.value.began < Self.longest }
      state.stale = state.stale.filter { now - $0.value < Self.longest }
      guard state.stale.removeValue(forKey: thread) == nil, state.renames.count < Self.maxRenames.ofAll,
        state.renames.values.count(where: { $0.user == user }) < Self.maxRenames.ofOne
      else { return .refused }
      state.renames[thread] = Rename(began: now, user: user, call: call, move: move)
      return .again
    }
  }

  /// The thread's rename is over.
  func end(_ thread: Int32) {
    guard count.load(ordering: .relaxed) > 0 else { return }
    state.withLock { state in
      state.renames[thread] = nil
      count.store(state.renames.count, ordering: .relaxed)
    }
  }

  /// A thread was told ESTALE.
  func noteStale(_ thread: Int32) {
    state.withLock { state in
      guard state.stale.count < Self.maxRenames.ofAll || state.stale[thread] != nil else { return }
      state.stale[thread] = monotonicNanoseconds()
    }
  }

  // MARK: Look-ups

  /// Whether the kernel must not keep a name, which a thread looks up.
  func covers(_ name: Name, in directory: ObjectNumber, by thread: Int32) -> Bool {
    guard count.load(ordering: .relaxed) > 0 else { return false }
    return state.withLock { state in
      let isMoving = state.renames.values.contains {
        $0.move.directory == directory && name.buffer.elementsEqual($0.move.name)
      }
      guard isMoving else { return false }
      if let own = state.renames[thread], own.move.directory == directory,
        name.buffer.elementsEqual(own.move.name)
      {
        state.renames[thread]?.isLookedUp = true
      }
      return true
    }
  }

  /// A thread is told that it may keep a name of an object that the kernel has already.
  func noteTold(_ object: ObjectNumber, to thread: Int32, at now: UInt32 = coarseSeconds()) {
    let place = Self.place(of: object)
    let before = state.withLock { state in
      if state.told.isEmpty { state.told = Array(repeating: Told(), count: Self.places) }
      return state.told[place]
    }
    let isRecent = now &- before.time <= Self.arrivalSeconds
    let isSeveral =
      isRecent && (before.thread == 0 || before.thread != thread && Self.lives(before.thread))
    state.withLock { state in
      let isUnchanged = state.told[place].time == before.time && state.told[place].thread == before.thread
      state.told[place] = Told(time: now, object: object, thread: isSeveral || !isUnchanged ? 0 : thread)
    }
  }

  /// Whether such an answer may still be under way to another thread.
  private func isUnderWay(_ object: ObjectNumber, besides thread: Int32) -> Bool {
    let now = coarseSeconds()
    if since != 0, now &- since <= Self.arrivalSeconds { return true }
    let told = state.withLock { $0.told.isEmpty ? Told() : $0.told[Self.place(of: object)] }
    guard told.time != 0, now &- told.time <= Self.arrivalSeconds, told.thread != thread else { return false }
    return told.thread == 0 || told.object == object && Self.lives(told.thread)
  }

  private static func lives(_ thread: Int32) -> Bool { ProcessID.hasThread(thread) }

  private static func place(of object: ObjectNumber) -> Int {
    Int(truncatingIfNeeded: object.inode ^ object.inode >> 10 ^ UInt64(object.device)) & (places - 1)
  }
}

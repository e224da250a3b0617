// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Synchronization

/// Finds out who is where, at a price that nobody can drive up.
///
/// To look at all processes takes a millisecond or two on a small machine. On average it may take two percent
/// of a processor's time; what was not used of that is kept, up to half a second.
final class Presence: Sendable {
  /// What was seen, and when it was begun to look.
  struct Look: Sendable {
    let began: UInt64
    let device: UInt32
    let directories: WorkingDirectories

    /// Who is seen may have gone a while later.
    var isFresh: Bool { monotonicNanoseconds() &- began < 250_000_000 }
  }

  private struct State {
    var last: Look?
    var isUnderWay = false
    /// For whom it was looked last.
    var lastUser: UInt32?
    /// The time that may be taken, and when that was reckoned.
    var time = Presence.mostTime
    var reckoned: UInt64 = 0
  }
  private static let mostTime: Int64 = 500_000_000
  /// After so many milliseconds a look is given up.
  ///
  /// Either the machine is busy, or a server is waited for: then there is no second look before the first has
  /// ended.
  private static let patience: UInt64 = 1000
  private let state = Mutex(State())
  private let firstHasEntered = Atomic<Bool>(false)

  /// Someone may enter a directory.
  ///
  /// Some machines let nobody look at their first process. It runs before all else, so it is only where it
  /// has entered itself.
  func entered(by caller: Caller) {
    guard caller.uid == 0, ProcessID.isOfFirst(caller.pid) else { return }
    firstHasEntered.store(true, ordering: .relaxed)
  }

  /// What was seen last, if that was begun after a moment.
  func last(on device: UInt32, since moment: UInt64) -> Look? {
    state.withLock { $0.last }.flatMap { $0.device == device && $0.began > moment ? $0 : nil }
  }

  /// Looks; nil if it is not to be known now, or would be too dear.
  ///
  /// Who has asked last leaves half of the time to others.
  func look(on device: UInt32, for user: UInt32) -> Look? {
    let began = monotonicNanoseconds()
    let mayLook = state.withLock { state in
      if state.reckoned == 0 { state.reckoned = began }
      let earned = Int64(clamping: (began &- state.reckoned) / 50)
      state.time = min(Self.mostTime, state.time &+ earned)
      state.reckoned = began
      guard !state.isUnderWay, state.time > (state.lastUser == user ? Self.mostTime / 2 : 0) else {
        return false
      }
      state.isUnderWay = true
      state.lastUser = user
      return true
    }
    return mayLook ? lookApart(on: device, began) : nil
  }

  /// On a thread of its own, since it may have to wait for a server that is gone.
  private func lookApart(on device: UInt32, _ began: UInt64) -> Look? {
    do throws(Errno) {
      let attempt = try Attempt()
      let thread = try JoinableThread(name: "presence") {
        let seen = WorkingDirectories.read(
          on: DeviceNumber(major: 0, minor: device),
          isFirstElsewhere: !self.firstHasEntered.load(ordering: .relaxed), milliseconds: Self.patience)
        let look = seen.map { Look(began: began, device: device, directories: $0) }
        self.end(look, taken: Self.threadTime)
        attempt.end(look)
      }
      thread.detach()
      return attempt.wait(milliseconds: Int32(Self.patience))
    } catch {
      end(nil, taken: 0)
      return nil
    }
  }

  /// What this thread has had of a processor, in nanoseconds.
  private static var threadTime: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
  }

  private func end(_ look: Look?, taken: Int64) {
    state.withLock { state in
      state.isUnderWay = false
      state.time = max(-Self.mostTime, state.time &- taken)
      if let look { state.last = look }
    }
  }

  private final class Attempt: Sendable {
    private let isOver: Wakeup
    private let look = Mutex<Look?>(nil)

    init() throws(Errno) { isOver = try Wakeup() }

    func end(_ look: Look?) {
      self.look.withLock { $0 = look }
      isOver.ring()
    }

    func wait(milliseconds: Int32) -> Look? {
      guard (try? isOver.fd.waitUntilReadable(milliseconds: milliseconds)) == true else { return nil }
      return look.withLock { $0 }
    }
  }
}

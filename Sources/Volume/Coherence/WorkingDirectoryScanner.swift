// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Synchronization

/// Finds the working directories of all processes, at a bounded cost.
///
/// Scanning all processes takes a millisecond or two on a small machine. On average the scans may use two
/// percent of one CPU; unused time accumulates up to half a second.
final class WorkingDirectoryScanner: Sendable {
  /// What a scan has found, and when it began.
  struct Scan: Sendable {
    let began: UInt64
    let device: UInt32
    let directories: WorkingDirectories

    /// A process that was seen may soon leave.
    var isFresh: Bool { monotonicNanoseconds() &- began < 250_000_000 }
  }

  private struct State {
    var last: Scan?
    var isUnderWay = false
    /// The user for whom the last scan was made.
    var lastUser: UInt32?
    /// The CPU time that scans may use, and when that was computed.
    var time = WorkingDirectoryScanner.mostTime
    var reckoned: UInt64 = 0
  }
  private static let mostTime: Int64 = 500_000_000
  /// A scan that takes longer, in milliseconds, is given up.
  ///
  /// The machine is busy, or the scan waits for a server. No other scan starts before it has ended.
  private static let timeout: UInt64 = 1000
  private let state = OrderedMutex(.leaf, State())
  private let firstHasEntered = Atomic<Bool>(false)

  /// Someone may enter a directory.
  ///
  /// Some machines hide their first process from everyone. It started before everything else, so it can only
  /// be in directories that it has entered through the mount.
  func entered(by caller: Caller) {
    guard caller.uid == 0, ProcessID.isOfFirst(caller.pid) else { return }
    firstHasEntered.store(true, ordering: .relaxed)
  }

  /// The last scan, if it began after `moment`.
  func last(on device: UInt32, since moment: UInt64) -> Scan? {
    state.withLock { $0.last }.flatMap { $0.device == device && $0.began > moment ? $0 : nil }
  }

  /// Scans; nil if that is not possible now, or would exceed the allowed time.
  ///
  /// The user of the last scan may use only half of the accumulated time.
  func scan(on device: UInt32, for user: UInt32) -> Scan? {
    let began = monotonicNanoseconds()
    let mayScan = state.withLock { state in
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
    return mayScan ? scanOnOwnThread(on: device, began) : nil
  }

  /// Scans on a thread of its own, which may have to wait for a server that does not answer.
  private func scanOnOwnThread(on device: UInt32, _ began: UInt64) -> Scan? {
    do throws(Errno) {
      let attempt = try Attempt()
      let thread = try JoinableThread(name: "cwd-scan") {
        let seen = WorkingDirectories.read(
          on: DeviceNumber(major: 0, minor: device),
          isFirstElsewhere: !self.firstHasEntered.load(ordering: .relaxed), milliseconds: Self.timeout)
        let scan = seen.map { Scan(began: began, device: device, directories: $0) }
        self.end(scan, taken: Self.threadTime)
        attempt.end(scan)
      }
      thread.detach()
      return attempt.wait(milliseconds: Int32(Self.timeout))
    } catch {
      end(nil, taken: 0)
      return nil
    }
  }

  /// The CPU time that this thread has used, in nanoseconds.
  private static var threadTime: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
  }

  private func end(_ scan: Scan?, taken: Int64) {
    state.withLock { state in
      state.isUnderWay = false
      state.time = max(-Self.mostTime, state.time &- taken)
      if let scan { state.last = scan }
    }
  }

  private final class Attempt: Sendable {
    private let isOver: Wakeup
    private let scan = OrderedMutex<Scan?>(.leaf, nil)

    init() throws(Errno) { isOver = try Wakeup() }

    func end(_ scan: Scan?) {
      self.scan.withLock { $0 = scan }
      isOver.ring()
    }

    func wait(milliseconds: Int32) -> Scan? {
      guard (try? isOver.fd.waitUntilReadable(milliseconds: milliseconds)) == true else { return nil }
      return scan.withLock { $0 }
    }
  }
}

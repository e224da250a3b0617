// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

// Who holds a lock of a file, and what is done about that.
//
//  1. A process is found by its stack in the kernel: it is in a read, write or listing, and waits there for
//     its own memory. Two seconds later it still waits for the same, and a thread that waits for a lock has
//     not got on meanwhile. A program whose memory is slow, and comes, is left alone, unless others of its
//     user's have its place at each of three looks.
//  2. It is killed. A wait for memory ends with that, usually; the lock is free, and whoever waits goes on.
//  3. A filesystem may have taken the request for that memory already and the kernel wait for the answer
//     whatever happens. Then the user's FUSE filesystems that owe answers are ended too.
//  4. The user is noted first: nothing of theirs is passed through for an hour (`LockHolders`). Files that
//     are open already still are. So all processes of a user who does it for the third time in that hour are
//     killed.
//  5. Root's processes are left alone, and named in the log.
//  6. One that waits for a pipe may be in nobody's way: pv(1) does so for hours. It is paused, which frees
//     the lock (``PausedThreads``). If others get on then, it was in their way, and its user is noted. The
//     second time such a process is killed, the third time all of that user's are.

/// Ends processes that hold locks of backing files; for a process of its own, which exits afterwards.
struct LockHolderSearch {
  private let holders: LockHolders
  /// What waits for them.
  private let stuck: [WaitingThread]
  /// The exit status where somebody was found.
  static let hasFound: Int32 = 3
  /// How many threads may wait for a process that does not let itself be looked at.
  private static let maxLooks = 128

  /// `strangers` are threads of others that wait for something.
  init(_ holders: LockHolders, _ stuck: [WaitingThread], _ strangers: [LockWaiters.Thread]) {
    self.holders = holders
    let others = strangers.prefix(Self.maxLooks).compactMap { WaitingThread($0.process, $0.thread) }
    self.stuck =
      stuck
      + others.filter { $0.waitsForFile && (Self.account(of: $0.process).map(Self.isLookedAt) ?? false) }
  }

  /// Whether somebody is found.
  func run() -> Bool {
    if stuck.isEmpty { return false }
    let first = search()
    if first.isEmpty { return false }
    pauseThread(milliseconds: 2000)
    let second = search().filter { first[$0.key] != nil }
    guard isInTheWay else { return true }
    var holding: [UInt32: Set<Int32>] = [:]
    for (user, found) in second {
      // One that gets on is slow, and not in the way for long.
      let held = found.memory.filter { first[user]?.memory.contains($0) == true }
      holding[user] = Set(held.map(\.process))
    }
    // One user after the other until others get on: the rest are in nobody's way, or the next search tells.
    for (user, found) in second.shuffled() where !found.pipes.isEmpty {
      let (left, hasHeld) = pause(found.pipes, of: user)
      holding[user, default: []].formUnion(left)
      if hasHeld { break }
    }
    if holding.values.allSatisfy(\.isEmpty) { holding = takingTurns(first, second) }
    for (user, processes) in holding where !processes.isEmpty {
      if user == 0 {
        DaemonLog.write("root's \(names(processes)) holds up others: \(Self.reason)")
      } else {
        end(processes, of: user)
      }
    }
    if holding.values.allSatisfy(\.isEmpty) { return true }
    pauseThread(milliseconds: 2000)
    for (user, left) in search() where user != 0 {
      let processes = Set(left.memory.map(\.process))
      if holding[user]?.isDisjoint(with: processes) == false { endFilesystems(of: user) }
    }
    return true
  }

  /// Processes of users who had other threads hold files at each of three looks: many that hold a lock for a
  /// second each, one after the other, are no better than one that holds it for ever.
  private func takingTurns(_ first: [UInt32: Found], _ second: [UInt32: Found]) -> [UInt32: Set<Int32>] {
    func differ(_ one: Found?, _ other: Found?) -> Bool {
      guard let one, let other, !one.memory.isEmpty, !other.memory.isEmpty else { return false }
      return Set(one.memory.map(\.thread)).isDisjoint(with: other.memory.map(\.thread))
    }
    guard second.contains(where: { differ(first[$0.key], $0.value) }) else { return [:] }
    pauseThread(milliseconds: 2000)
    let third = search().filter { user, found in
      differ(first[user], second[user]) && differ(second[user], found) && differ(first[user], found)
    }
    return isInTheWay ? third.mapValues { Set($0.memory.map(\.process)) } : [:]
  }

  /// Whether somebody waits for the same still.
  private var isInTheWay: Bool { stuck.contains { $0.again != nil } }

  private static let reason = "it holds the lock of a file that the kernel reads or writes for it"

  /// Has threads of a user's that wait for pipes let go of their locks for a moment.
  ///
  /// The processes that did not are the result, and whether others got on.
  private func pause(_ threads: [WaitingThread], of user: UInt32) -> (left: Set<Int32>, hasHeld: Bool) {
    let waited = stuck.filter { $0.again != nil }
    let paused = PausedThreads(threads, until: monotonicNanoseconds() + 3_000_000_000)
    // A thread that has stopped has let go, and has woken who waited. What gets on later does so for another
    // reason.
    var hasHeld = waited.contains { $0.again == nil }
    if !hasHeld {
      pauseThread(milliseconds: 10)
      hasHeld = waited.contains { $0.again == nil }
    }
    let others = Set(paused.others.map(\.process))
    if hasHeld {
      // Whoever waits behind those gets on, too.
      pauseThread(milliseconds: 100)
      note(Set(threads.map(\.process)).subtracting(others), of: user)
    }
    paused.end()
    return (others, hasHeld)
  }

  /// A user has held a lock while waiting for a pipe.
  private func note(_ processes: Set<Int32>, of user: UInt32) {
    if processes.isEmpty { return }
    let what = "\(names(processes)) held up others: waiting for a pipe, it had the lock of a file"
    guard user != 0 else { return DaemonLog.write("root's \(what)") }
    let times = holders.add(user)
    let name = name(of: user)
    DaemonLog.write(
      "\(name)'s \(what)\(times > 1 ? ", not for the first time in this hour; it is ended" : ""). "
        + "For an hour the kernel reads and writes nothing for \(name) by itself")
    if times > 1 { for process in processes { kill(process, of: user) } }
    if times > 2 { endAll(of: user, name) }
  }

  /// Who is to answer for a process, by the user who has started it; nil if it has ended.
  private static func account(of process: Int32) -> UInt32? {
    ProcessID.user(of: process).map { SubordinateUsers.ofThisMachine.holder(of: $0) }
  }

  /// Whether processes of a user count; only tests leave some out, since others run beside them.
  private static func isLookedAt(_ user: UInt32) -> Bool {
    #if DEBUG
      if let users = getenv("INSULA_LOCK_HOLDERS").map({ String(cString: $0).parts(between: ",") }) {
        return users.contains { $0 == "\(user)" }
      }
    #endif
    return true
  }

  // MARK: Looking

  /// What was found of one user.
  private struct Found {
    /// Those that wait for memory.
    var memory: [WaitingThread] = []
    /// Those that wait for a pipe.
    var pipes: [WaitingThread] = []
  }

  /// All processes of the machine that hold a file, by user.
  ///
  /// A process that executes a program may make each look at it wait. So there is a thread for each process,
  /// and the processes come in any order: somebody who has many such processes delays the search, and does
  /// not prevent it.
  private func search() -> [UInt32: Found] {
    struct State {
      var found: [WaitingThread] = []
      var looks = 0
    }
    let state = Condition(State())
    let end = monotonicNanoseconds() + 3_000_000_000
    for process in ProcessID.numbers(in: "/proc").shuffled() {
      let hasRoom = state.wait(milliseconds: millisecondsLeft(until: end)) { $0.looks < Self.maxLooks }
      guard hasRoom else { break }
      state.change { $0.looks += 1 }
      let thread = try? JoinableThread(name: "look") {
        let holders = WaitingThread.all(of: process).filter { $0.hold != nil }
        state.change {
          $0.looks -= 1
          $0.found += holders
        }
      }
      if let thread { thread.detach() } else { state.change { $0.looks -= 1 } }
    }
    _ = state.wait(milliseconds: millisecondsLeft(until: end)) { $0.looks == 0 }
    var found: [UInt32: Found] = [:]
    for thread in state.withLock({ $0.found }) {
      guard let user = Self.account(of: thread.process), Self.isLookedAt(user) else { continue }
      if thread.hold == .pipe {
        found[user, default: Found()].pipes.append(thread)
      } else {
        found[user, default: Found()].memory.append(thread)
      }
    }
    return found
  }

  // MARK: Ending

  private func end(_ processes: Set<Int32>, of user: UInt32) {
    let isRepeated = holders.add(user) > 2
    let name = name(of: user)
    DaemonLog.write(
      "\(name)'s \(names(processes)) is ended: \(Self.reason), and waits there for memory of its own while "
        + "others wait. For an hour the kernel reads and writes nothing for \(name) by itself")
    for process in processes { kill(process, of: user) }
    if isRepeated { endAll(of: user, name) }
  }

  private func endAll(of user: UInt32, _ name: String) {
    DaemonLog.write("all processes of \(name) are ended: it was the third time in this hour")
    // What is started meanwhile is found by the next round.
    for _ in 0..<3 {
      for process in ProcessID.numbers(in: "/proc") where Self.account(of: process) == user {
        kill(process, of: user)
      }
    }
  }

  /// Kills a process of a user's, whichever has the number by then.
  private func kill(_ process: Int32, of user: UInt32) {
    guard let handle = try? SharedFD(ProcessID.open(process)), Self.account(of: process) == user else {
      return
    }
    // It has the number still if it can be signalled.
    try? handle.use { (handle) throws(Errno) in try handle.send(signal: SIGKILL) }
  }

  private func name(of user: UInt32) -> String { LocalAccounts.users.name(of: user) ?? "user \(user)" }

  private func names(_ processes: Set<Int32>) -> String {
    processes.inOrder(by: <).map { process in
      "process \(process) (\(ProcessID.process(ofThread: process)?.name ?? "?"))"
    }.joined(separator: ", ")
  }

  /// Ends all FUSE filesystems of a user that owe an answer.
  private func endFilesystems(of user: UInt32) {
    let limits: DetachedMount.Limits = [.noSetUserID, .noDevices, .noPrograms]
    guard let control = try? SharedFD(DetachedMount.make(type: "fusectl", options: [], limits)) else {
      return DaemonLog.write("can't end the filesystems of user \(user), for which its processes wait")
    }
    let connections = "/proc/self/fd/\(control.number)"
    for connection in ProcessID.numbers(in: connections) {
      let path = "\(connections)/\(connection)"
      guard let place = try? FD.cwd.openFollowing(path, pathOnly | O_DIRECTORY),
        let status = try? place.fd.status(), status.st_uid != 0,
        SubordinateUsers.ofThisMachine.holder(of: status.st_uid) == user,
        let waiting = FD.text(of: path + "/waiting", limit: 64)?.parts(between: "\n").first, waiting != "0"
      else { continue }
      DaemonLog.write("ending a filesystem of user \(user) that does not answer")
      if let file = try? FD.cwd.openFollowing(path + "/abort", O_WRONLY) { try? file.fd.writeAll("1".utf8) }
    }
  }
}

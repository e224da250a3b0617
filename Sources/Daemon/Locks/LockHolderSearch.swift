// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

// Who holds a lock of a backing file, and what is done about that.
//
//  1. A process is found by its stack in the kernel: it is in a passthrough read or write, and waits there
//     for its own memory. Two seconds later it, or another one of its user's, still does, and a thread of
//     ours has not got on meanwhile: many that hold a lock for a second each, one after the other, are no
//     better.
//  2. It is killed. A wait for memory ends with that, usually; the lock is free, and whoever waits goes on.
//  3. A filesystem may have taken the request for that memory already and the kernel wait for the answer
//     whatever happens. Then the user's FUSE filesystems that owe answers are ended too.
//  4. The user is noted first: nothing of theirs is passed through for an hour (`LockHolders`). Files that
//     are open already still are. So all processes of a user who does it again in that hour are killed.
//  5. Root's processes are left alone, and named in the log.

/// Ends processes that hold locks of backing files; for a process of its own, which exits afterwards.
struct LockHolderSearch {
  private let holders: LockHolders
  /// What waits for them.
  private let stuck: [WaitingThread]
  /// How many threads may wait for a process that does not let itself be looked at.
  private static let maxLooks = 128

  init(_ holders: LockHolders, _ stuck: [WaitingThread]) {
    self.holders = holders
    self.stuck = stuck
  }

  func run() {
    let first = search()
    if first.isEmpty { return }
    pauseThread(milliseconds: 2000)
    let second = search()
    guard stuck.contains(where: { $0.again != nil }) else { return }
    for (user, processes) in second where first[user] != nil {
      if user == 0 {
        DaemonLog.write("root's \(names(processes)) holds up others: \(Self.reason)")
      } else {
        end(processes, of: user)
      }
    }
    pauseThread(milliseconds: 2000)
    for (user, left) in search() where user != 0 && first[user] != nil {
      if second[user]?.isDisjoint(with: left) == false { endFilesystems(of: user) }
    }
  }

  private static let reason = "it holds the lock of a file that the kernel reads or writes for it"

  /// Who is to answer for a process, by the user who has started it; nil if it has ended.
  private func account(of process: Int32) -> UInt32? {
    ProcessID.user(of: process).map { SubordinateUsers.ofThisMachine.holder(of: $0) }
  }

  // MARK: Looking

  /// All processes of the machine that hold a backing file, by user.
  ///
  /// A process that executes a program may make each look at it wait. So there is a thread for each process,
  /// and the processes come in any order: somebody who has many such processes delays the search, and does
  /// not prevent it.
  private func search() -> [UInt32: Set<Int32>] {
    struct State {
      var found: Set<Int32> = []
      var looks = 0
    }
    let state = Condition(State())
    let end = monotonicNanoseconds() + 3_000_000_000
    for process in ProcessID.numbers(in: "/proc").shuffled() {
      let hasRoom = state.wait(milliseconds: millisecondsLeft(until: end)) { $0.looks < Self.maxLooks }
      guard hasRoom else { break }
      state.change { $0.looks += 1 }
      let thread = try? JoinableThread(name: "look") {
        let isHolder = WaitingThread.all(of: process).contains(where: \.holdsBackingFile)
        state.change {
          $0.looks -= 1
          if isHolder { $0.found.insert(process) }
        }
      }
      if let thread { thread.detach() } else { state.change { $0.looks -= 1 } }
    }
    _ = state.wait(milliseconds: millisecondsLeft(until: end)) { $0.looks == 0 }
    var found: [UInt32: Set<Int32>] = [:]
    for process in state.withLock({ $0.found }) {
      if let user = account(of: process) { found[user, default: []].insert(process) }
    }
    #if DEBUG
      // Tests that run beside each other have holders of their own.
      if let users = getenv("INSULA_LOCK_HOLDERS").map({ String(cString: $0).parts(between: ",") }) {
        return found.filter { user, _ in users.contains { $0 == "\(user)" } }
      }
    #endif
    return found
  }

  // MARK: Ending

  private func end(_ processes: Set<Int32>, of user: UInt32) {
    let isRepeated = holders.add(user)
    let name = LocalAccounts.users.name(of: user) ?? "user \(user)"
    DaemonLog.write(
      "\(name)'s \(names(processes)) is ended: \(Self.reason), and waits there for memory of its own while "
        + "others wait. For an hour the kernel reads and writes nothing for \(name) by itself")
    for process in processes { kill(process, of: user) }
    guard isRepeated else { return }
    DaemonLog.write("all processes of \(name) are ended: it was not the first time in this hour")
    // What is started meanwhile is found by the next round.
    for _ in 0..<3 {
      for process in ProcessID.numbers(in: "/proc") where account(of: process) == user {
        kill(process, of: user)
      }
    }
  }

  /// Kills a process of a user's, whichever has the number by then.
  private func kill(_ process: Int32, of user: UInt32) {
    guard let handle = try? SharedFD(ProcessID.open(process)), account(of: process) == user else { return }
    // It has the number still if it can be signalled.
    try? handle.use { (handle) throws(Errno) in try handle.send(signal: SIGKILL) }
  }

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

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// The mount outlives the process that serves it; `Tests/Kills/kills.py` shows it for longer.
struct KeeperTests {
  /// Kills the process that serves, and waits for the next one.
  private func replace(in mounted: MountedStore, _ signal: Int32 = SIGKILL) throws {
    let before = try #require(try mounted.daemon())
    #expect(kill(before, signal) == 0)
    #expect(try Program.waitForEnd(before))
    #expect(try eventually { try mounted.daemon().map { $0 != before } ?? false })
  }

  /// A command asks all daemons who they are; one that is stopped keeps nobody who means another one.
  @Test(.enabled(if: Program.isRoot, "all daemons of a machine are root's")) func silentDaemonsDelayNoOther()
    throws
  {
    let silent = try MountedStore.mounted()
    let mounted = try MountedStore.mounted()
    // Whose daemon listens in its store.
    let users = try MountedStore(asNobody: true)
    try users.mount()
    let daemon = try #require(try silent.daemon())
    #expect(kill(daemon, SIGSTOP) == 0)
    defer { kill(daemon, SIGCONT) }
    let start = monotonicNanoseconds()
    #expect(try mounted.run("status", mounted.point).status == 0)
    #expect(try users.run("status", users.store).status == 0)
    #expect(monotonicNanoseconds() - start < 4_000_000_000)
    // Who seeks what no daemon serves waits for the one that is stopped, and then no longer.
    let none = try mounted.run("status", mounted.temporary.appending("nothing"))
    #expect(none.status == 6 || none.status == 4, "\(none.status) \(none.errors)")
    #expect(monotonicNanoseconds() - start < 15_000_000_000)
  }

  /// Descriptors of a dead worker are open in its keeper too, until the next one closes them.
  ///
  /// The first number that is free once the mount is ready is that of a pipe that the keeper had.
  @Test(arguments: [false, true]) func callersAreLetGo(rootless: Bool) throws {
    guard KernelRelease.own >= KernelRelease(6, 9) else {
      return print("skipped: before Linux 6.9 no daemon is replaced")
    }
    let mounted = try MountedStore(asNobody: rootless)
    try mounted.mount()
    let path = try rootless ? mounted.store + "/state/control.sock" : mounted.socket()
    let end = try #require(path.lastIndex(of: "/"))
    let directory = try FD.cwd.openFollowing(String(path[..<end]), O_RDONLY | O_DIRECTORY)
    let callers = try (0..<8).map { _ in
      SharedFD(try LocalSocket.connect(in: directory.fd, name: String(path[path.index(after: end)...])))
    }
    // Until the daemon has taken them in.
    _ = try mounted.count("pid")
    try replace(in: mounted)
    for caller in callers {
      let isOver = try caller.use { (fd) throws(Errno) in try fd.waitUntilReadable(milliseconds: 5000) }
      #expect(isOver)
    }
  }

  @Test(arguments: [[], ["nopassthrough"], ["nohandles"]]) func openThingsStay(options: [String]) throws {
    guard KernelRelease.own >= KernelRelease(6, 9) else {
      return print("skipped: before Linux 6.9 no daemon is replaced")
    }
    let mounted = try MountedStore()
    let words = ["mount", mounted.store, mounted.point] + options.flatMap { ["-o", $0] }
    #expect(try mounted.run(words).status == 0)
    let place = mounted.path("Users/Shared")
    let script = """
      import fcntl, os, sys, time
      os.chdir(sys.argv[1])
      kept = open("kept", "w+"); kept.write("before"); kept.flush()
      gone = open("gone", "w+"); gone.write("nameless"); gone.flush(); os.unlink("gone")
      lock = open("lock", "w"); fcntl.lockf(lock, fcntl.LOCK_EX, 10, 20); fcntl.flock(lock, fcntl.LOCK_EX)
      os.mkdir("dir"); os.chdir("dir")
      print("ready", flush=True); sys.stdin.readline()
      kept.seek(0); assert kept.read() == "before"
      kept.write(" and after"); kept.flush()
      gone.seek(0); assert gone.read() == "nameless" and os.fstat(gone.fileno()).st_nlink == 0
      assert os.listdir(".") == [] and os.listdir("..") != []
      os.mkdir("new"); os.rename("new", "../moved"); os.rmdir("../moved")
      child = os.fork()
      if child == 0:
          other = open("../lock", "r+")
          for lock in (lambda: fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 20),
                       lambda: fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)):
              try: lock(); os._exit(1)
              except BlockingIOError: pass
          fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB, 5, 40)
          os._exit(0)
      assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
      """
    let ready = mounted.temporary.appending("ready")
    let result = try Program.run([
      "sh", "-c",
      """
      daemon() { "$insula" status "$store" --json | grep -o '"pid" *: *[0-9]*' | grep -o '[0-9]*$'; }
      insula=$5 store=$6
      mkfifo "$3"; exec 9<>"$3"
      /usr/bin/python3 -c "$1" "$2" < "$3" > "$4" & python=$!
      until grep -q ready "$4" 2> /dev/null || [ $((w+=1)) -gt 6000 ]; do sleep 0.02; done
      for signal in KILL ABRT; do
        before=$(daemon)
        kill -$signal $before
        for try in $(seq 500); do
          now=$(daemon)
          [ -n "$now" ] && [ "$now" != $before ] && break; sleep 0.02
        done
      done
      echo go >&9; wait $python
      """,
      "sh", script, place, mounted.temporary.appending("fifo"), ready, Program.insula, mounted.store,
    ])
    #expect(result.status == 0, "\(result.output)\(result.errors)")
    #expect(FD.text(of: place + "/kept", limit: 100) == "before and after")
    try replace(in: mounted)
    #expect(try mounted.unmount().status == 0)
  }

  /// Whatever Swift's runtime would do about it: it may have handlers that start another program.
  @Test(arguments: [SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT])
  func aCrashEndsItAtOnce(signal: Int32) throws {
    guard KernelRelease.own >= KernelRelease(6, 9) else {
      return print("skipped: before Linux 6.9 no daemon is replaced")
    }
    let mounted = try MountedStore()
    let result = try Program.run([
      "env", "SWIFT_BACKTRACE=enable=yes", Program.insula, "mount", mounted.store, mounted.point,
    ])
    #expect(result.status == 0, "\(result.errors)")
    try replace(in: mounted, signal)
    #expect(mounted.isMounted)
    #expect(try mounted.unmount().status == 0)
  }

  /// When memory is short the kernel is to end the worker, which is replaced, and not the keeper.
  @Test func theKeeperIsNotTheFirstToGo() throws {
    guard KernelRelease.own >= KernelRelease(6, 9) else {
      return print("skipped: before Linux 6.9 no daemon is replaced")
    }
    let mounted = try MountedStore()
    #expect(try mounted.run("mount", mounted.store, mounted.point).status == 0)
    func score(_ process: Int32) throws -> Int {
      let text = try #require(FD.text(of: "/proc/\(process)/oom_score_adj", limit: 16))
      return try #require(Int(text.prefix { $0 != "\n" }))
    }
    for _ in 0..<2 {
      let worker = try #require(try mounted.daemon())
      let status = try #require(FD.text(of: "/proc/\(worker)/status", limit: 4096))
      let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("PPid:") })
      let keeper = try #require(Int32(line.dropFirst(5).filter(\.isNumber)))
      #expect(try score(keeper) < score(worker))
      #expect(try score(worker) >= score(ProcessID.own))
      try replace(in: mounted)
    }
    #expect(try mounted.unmount().status == 0)
  }

  @Test func whoDiesAgainAndAgainIsGivenUp() throws {
    guard KernelRelease.own >= KernelRelease(6, 9) else {
      return print("skipped: before Linux 6.9 no daemon is replaced")
    }
    let mounted = try MountedStore()
    #expect(try mounted.run("mount", mounted.store, mounted.point, "-o", "restarts=2").status == 0)
    try replace(in: mounted)
    try replace(in: mounted)
    let last = try #require(try mounted.daemon())
    #expect(kill(last, SIGKILL) == 0)
    #expect(eventually { !mounted.isMounted })
    let log = FD.text(of: mounted.store + "/state/daemon.log", limit: 1 << 16) ?? ""
    #expect(log.contains("has died 3 times in 10 s, the last time by signal 9; removing the mount"), "\(log)")
    #expect(try mounted.run("mount", mounted.store, mounted.point).status == 0)
    #expect(try mounted.unmount().status == 0)
  }
}

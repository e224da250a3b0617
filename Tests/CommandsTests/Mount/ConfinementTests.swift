// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Daemon
internal import Foundation
internal import LinuxIO
internal import Synchronization
internal import TestSupport
internal import Testing

/// What a daemon could still do if somebody took it over.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct ConfinementTests {
  /// Capabilities 0 to 9, and processes, mounts, reserves, devices, leases, file capabilities.
  private static let kept: UInt64 = 0x3ff | 1 << 19 | 1 << 21 | 1 << 24 | 1 << 27 | 1 << 28 | 1 << 31

  /// What the kernel says about each thread of a process.
  private static func threads(of process: Int32) throws -> [[String: String]] {
    let threads = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task")
    return try threads.map { try fields(of: "/proc/\(process)/task/\($0)/status") }
  }

  private static func fields(of path: String) throws -> [String: String] {
    let text = try #require(FD.text(of: path, limit: 1 << 16))
    let pairs = text.split(separator: "\n").map { $0.split(separator: ":\t", maxSplits: 1).map(String.init) }
    return Dictionary(pairs.compactMap { $0.count == 2 ? ($0[0], $0[1]) : nil }) { first, _ in first }
  }

  private static func bits(_ text: String?) throws -> UInt64 {
    try #require(text.flatMap { UInt64($0, radix: 16) })
  }

  @Test func rootsDaemonKeepsOnlyTheCapabilitiesThatItUses() throws {
    let mounted = try MountedStore.mounted()
    // Who has asked as somebody leaves threads behind that were somebody.
    let script = """
      set -e; cd "$1"; echo a > f; chown 65534:65534 f; chmod 4755 f; chattr +i f; chattr -i f
      setfattr -n user.x -v y f; setfattr -n trusted.x -v y f; setcap cap_chown+ep f; mknod n c 1 3
      ln f g; mkdir d; mkfifo p; flock f true; chmod 0777 .; rm -r f g d p n
      """
    let made = try Program.run(["sh", "-c", script, "sh", mounted.path("Users/Shared")])
    #expect(made.status == 0, "\(made.errors)")
    #expect(try Program.runAsNobody(["touch", mounted.path("Users/Shared/theirs")]).status == 0)
    let daemon = try #require(try mounted.daemon())
    let threads = try Self.threads(of: daemon)
    #expect(threads.count > 3)
    let ours = try Self.bits(Self.fields(of: "/proc/self/status")["CapPrm"])
    for thread in threads {
      #expect(try Self.bits(thread["CapPrm"]) == ours & Self.kept, "\(thread)")
      for set in ["CapEff", "CapBnd"] {
        #expect(try Self.bits(thread[set]) & ~Self.kept == 0, "\(set) \(thread)")
      }
      #expect(try Self.bits(thread["CapInh"]) == 0 && Self.bits(thread["CapAmb"]) == 0, "\(thread)")
      #expect(thread["NoNewPrivs"] == "1" && thread["Seccomp"] == "2", "\(thread)")
    }
    #expect(try mounted.unmount().status == 0)
  }

  /// Under the daemon's filter, and with the privileges that it has then.
  @Test(arguments: [false, true])
  func workersHaveShortTimeSlices(rootless: Bool) throws {
    guard clx_time_slice(0) > 0 else {
      return print("skipped: before Linux 6.12 no thread has a time slice of its own")
    }
    let mounted = try MountedStore(asNobody: rootless)
    try mounted.mount()
    let daemon = try #require(try mounted.daemon())
    var slices: [String: Set<UInt64>] = [:]
    for thread in try Self.threads(of: daemon) {
      let name = try #require(thread["Name"])
      let number = try #require(thread["Pid"].flatMap { Int32($0) })
      slices[name, default: []].insert(clx_time_slice(number))
    }
    #expect(slices["insula-worker"] == [200_000] && slices["insula-reserve"] == [200_000], "\(slices)")
    #expect(slices["insula-monitor"].map { $0.contains(200_000) } == false, "\(slices)")
    #expect(try mounted.unmount().status == 0)
  }

  @Test func usersDaemonHasNoCapabilitiesAndCanGainNone() throws {
    let mounted = try MountedStore(asNobody: true)
    try mounted.mount()
    let daemon = try #require(try mounted.daemon())
    let threads = try Self.threads(of: daemon)
    #expect(threads.count > 3)
    for thread in threads {
      for set in ["CapPrm", "CapEff", "CapInh", "CapAmb"] {
        #expect(try Self.bits(thread[set]) == 0, "\(set) \(thread)")
      }
      #expect(thread["NoNewPrivs"] == "1" && thread["Seccomp"] == "2", "\(thread)")
    }
    // It takes a set-user-id program to take this mount away.
    #expect(try mounted.unmount().status == 0)
    #expect(!mounted.isMounted)
  }

  /// Nothing of the daemon's is in the process that unmounts for it, and it has no life of its own.
  @Test func whoUnmountsForUsersHoldsNothingOfTheDaemons() throws {
    let mounted = try MountedStore(asNobody: true)
    try mounted.mount()
    let daemon = try #require(try mounted.daemon())
    let keeper = try #require(try mounted.keeper())
    let helper = try #require(try Self.child(of: keeper, besides: daemon))
    let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(helper)/fd").sorted()
    #expect(descriptors == ["0", "1", "2", "3"])
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(helper)/cwd") == "/")
    let names = try Program.runAsNobody(["readlink", "/proc/\(helper)/fd/3", "/proc/\(helper)/exe"])
    #expect(names.ending == .failed && names.output.isEmpty, "its user can trace it: \(names)")
    // A signal that is for all of a session's processes, or of a service's, must not end it before the
    // daemon.
    for signal in [SIGTERM, SIGINT, SIGHUP] { #expect(kill(helper, signal) == 0) }
    #expect(try mounted.unmount().status == 0)
    #expect(eventually { access("/proc/\(helper)", F_OK) != 0 })
  }

  @Test func usersMountGoesWithoutWhoUnmountsForTheDaemon() throws {
    let mounted = try MountedStore(asNobody: true)
    try mounted.mount()
    let daemon = try #require(try mounted.daemon())
    let keeper = try #require(try mounted.keeper())
    let helper = try #require(try Self.child(of: keeper, besides: daemon))
    #expect(kill(helper, SIGKILL) == 0)
    let result = try mounted.unmount()
    #expect(result.status == 0, "\(result.errors)")
    #expect(!mounted.isMounted)
  }

  private static func child(of process: Int32, besides other: Int32) throws -> Int32? {
    for name in try FileManager.default.contentsOfDirectory(atPath: "/proc") {
      guard let pid = Int32(name), let text = FD.text(of: "/proc/\(pid)/status", limit: 1 << 16) else {
        continue
      }
      if pid != other, text.contains("\nPPid:\t\(process)\n") { return pid }
    }
    return nil
  }
}

/// What becomes of system calls under the daemon's filter, tried on threads of our own.
struct DaemonFilterTests {
  /// Does something on a thread that is under the filter.
  private static func confined<Value: Sendable>(
    isSystem: Bool, _ body: @escaping @Sendable () -> Value
  ) throws -> Value {
    let result = Mutex<Value?>(nil)
    let failure = Mutex<Errno?>(nil)
    let thread = try JoinableThread(name: "confined") {
      do throws(Errno) {
        try DaemonFilter.program(isSystem: isSystem).install(forAllThreads: false)
        let value = body()
        result.withLock { $0 = value }
      } catch {
        failure.withLock { $0 = error }
      }
    }
    thread.join()
    if let failure = failure.withLock({ $0 }) { throw failure }
    return try #require(result.withLock { $0 })
  }

  private static func calls(isSystem: Bool) -> Set<Int> {
    var calls = [Int32](repeating: 0, count: 1024)
    let count = clx_daemon_calls(isSystem ? 1 : 0, &calls, UInt32(calls.count))
    return Set(calls.prefix(Int(count)).map(Int.init))
  }

  /// Those whose arguments are judged.
  private static let judged = Set(
    [
      clx_filter_ioctl(), clx_filter_clone(), clx_filter_clone3(), clx_filter_prctl(), clx_filter_prlimit(),
      clx_filter_sched_getattr(), clx_filter_sched_setattr(), clx_filter_socket(),
    ].map(Int.init))

  /// The kernel lets these past every filter, and answers only where it has put them itself: uretprobe,
  /// uprobe.
  private static let past: Set<Int> = [335, 336]

  @Test(arguments: [false, true])
  func whatIsNotListedIsRefused(isSystem: Bool) throws {
    let refused = Set(0..<470).subtracting(Self.calls(isSystem: isSystem)).subtracting(Self.judged)
      .subtracting(Self.past).sorted()
    #expect(refused.count > 100)
    let made = try Self.confined(isSystem: isSystem) { () -> [String] in
      // The first that is not refused ends it, before one comes that would do harm.
      for call in refused {
        let error = clx_try_call(call)
        guard error == EPERM else { return ["\(call): \(Errno(error).message)"] }
      }
      return []
    }
    #expect(made.isEmpty)
  }

  @Test func usersMakeNoCallsOfRoots() throws {
    let roots = Self.calls(isSystem: true).subtracting(Self.calls(isSystem: false)).sorted()
    #expect(roots.count == 11)
    #expect(try Self.confined(isSystem: false) { roots.allSatisfy { clx_try_call($0) == EPERM } })
  }

  @Test(arguments: [false, true])
  func whatIsListedReachesTheKernel(isSystem: Bool) throws {
    // With descriptors that there are none of; refused they would fail with EPERM.
    let errors = try Self.confined(isSystem: isSystem) { () -> [Int32] in
      [
        clx_fcntl(-1, F_GETFD, 0) < 0 ? errno : 0, clx_syncfs(-1) < 0 ? errno : 0,
        clx_fallocate(-1, 0, 0, 1) < 0 ? errno : 0, clx_ioctl(-1, CLX_FS_IOC_GETFLAGS, nil) < 0 ? errno : 0,
        clx_accept4(-1, 0) < 0 ? errno : 0,
      ]
    }
    #expect(errors == Array(repeating: EBADF, count: 5))
  }

  @Test func numbersOfOtherTablesAreRefusedAndNewOnesUnknown() throws {
    let errors = try Self.confined(isSystem: true) { () -> [Int32] in
      // clone3 has one number everywhere; those to come are unknown to older kernels.
      [clx_try_call(435), clx_try_call(600), clx_try_call(0x4000_0000), clx_try_call(0x4000_0000 + 39)]
    }
    #expect(errors == [ENOSYS, ENOSYS, EPERM, EPERM])
  }

  @Test func processesNamespacesAndPrivilegesAreRefused() throws {
    let errors = try Self.confined(isSystem: true) { () -> [String: Int32] in
      var errors: [String: Int32] = [:]
      func note(_ name: String, _ result: Int32) { errors[name] = result < 0 ? errno : 0 }
      let child = clx_fork()
      if child == 0 { _exit(0) }
      note("fork", child)
      // With every flag there is: a thread in namespaces of its own.
      errors["clone"] = clx_try_call(Int(clx_filter_clone()))
      note("unshare", clx_unshare(CLX_CLONE_NEWNS))
      note("ptrace", Int32(clamping: clx_ptrace(0, 0, 0)))
      note("pivot_root", clx_pivot_root("/", "/"))
      // The user's terminal, memory that others may look at, and other processes' limits.
      note("TIOCSTI", clx_ioctl(-1, 0x5412, nil))
      note("PR_SET_DUMPABLE", clx_prctl(4, 1))
      errors["prlimit"] = clx_try_call(Int(clx_filter_prlimit()))
      errors["sched_setattr"] = clx_try_call(Int(clx_filter_sched_setattr()))
      errors["keys"] = clx_try_call(Int(clx_filter_keyctl()))
      return errors
    }
    #expect(errors.count == 10 && errors.values.allSatisfy { $0 == EPERM }, "\(errors)")
  }

  @Test func socketsAreLocalOrOfTheInternet() throws {
    let errors = try Self.confined(isSystem: true) { () -> [Int32] in
      // Local, internet, news of networks; of the machine below, bare packets, and the kernel's audit.
      let asked: [(family: Int32, number: Int32)] = [
        (1, 0), (2, 0), (10, 0), (16, 0), (40, 0), (17, 0), (16, 9),
      ]
      return asked.map { asked in
        let made = socket(asked.family, 2, asked.number)
        guard made >= 0 else { return errno }
        close(made)
        return 0
      }
    }
    #expect(errors == [0, 0, 0, 0, EAFNOSUPPORT, EAFNOSUPPORT, EPROTONOSUPPORT])
  }

  /// This holds for a whole process, so one of our own tries it: from fork to its end it makes bare calls
  /// alone.
  @Test(.enabled(if: clx_prctl(66, 0) >= 0, "PR_GET_MDWE takes Linux 6.3"))
  func whatWasWrittenIsNeverRun() throws {
    let child = clx_fork()
    if child == 0 {
      guard clx_refuse_made_code() == 0 else { _exit(2) }
      let page = mmap(nil, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
      _exit(mprotect(page, 4096, PROT_READ | PROT_EXEC) == 0 ? 1 : 0)
    }
    try check(child)
    var status: Int32 = -1
    try retrying { waitpid(child, &status, 0) }
    #expect(clx_exit_status(status) == 0)
  }

  @Test func threadsAreMadeAndAreUnderTheFilterToo() throws {
    let error = try Self.confined(isSystem: true) { () -> Int32 in
      let error = Mutex<Int32>(0)
      let thread = try? JoinableThread(name: "next") {
        error.withLock { $0 = clx_unshare(CLX_CLONE_NEWUSER) < 0 ? errno : 0 }
      }
      thread?.join()
      return error.withLock { $0 }
    }
    #expect(error == EPERM)
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A user's process that nobody can look at makes nobody wait.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct HiddenProcessTests {
  /// Processes of a user's that hold the locks of their memory maps.
  ///
  /// They unmap changed files of a filesystem that does not answer. They let go at the end, or when somebody
  /// has waited for them for too long.
  private final class Holders: Sendable {
    let pids: [Int32]
    private let mounted: MountedStore
    private let user: TemporaryAccount
    private let isOver = Condition(false)

    private static let script = """
      import ctypes, os, sys, time
      map = ctypes.CDLL(None).mmap
      map.restype, map.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_long] * 4
      file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
      os.ftruncate(file, 65536)
      # Shared, and writable.
      memory = map(None, 65536, 3, 1, file, 0)
      ctypes.memset(memory, 120, 65536)
      open(sys.argv[1] + ".ready", "w").close()
      # One byte, so that the next one gets its own.
      os.read(0, 1)
      ctypes.memset(memory, 121, 65536)
      # Something else in its place, at once.
      map(memory, 65536, 1, 0x32, -1, 0)
      time.sleep(600)
      """

    init(count: Int) throws {
      // Of that user no other process is looked at meanwhile, so it is none that other tests use.
      user = try TemporaryAccount()
      let account = user.account
      let mounted = try MountedStore(owner: account)
      self.mounted = mounted
      try mounted.mount(options: "nopassthrough")
      let place = mounted.path("Users/Shared")
      let go = mounted.temporary.appending("go")
      guard mkfifo(go, 0o600) == 0, chown(go, account.uid, account.gid) == 0 else { throw Errno.last }
      // Open for both, so that nobody waits.
      let pipe = open(go, O_RDWR | O_CLOEXEC)
      defer { close(pipe) }
      var begun: [Int32] = []
      for number in 0..<count {
        let result = try Program.run([
          "setpriv", "--reuid=\(account.uid)", "--regid=\(account.gid)", "--clear-groups", "sh", "-c",
          "/usr/bin/python3 -c '\(Self.script)' \(place)/\(number) <\(go) >/dev/null 2>&1 & echo $!",
        ])
        begun.append(try #require(Int32(result.output.dropLast()), "\(result)"))
        #expect(eventually { access(mounted.backing("Users/Shared/\(number).ready"), F_OK) == 0 })
      }
      let pids = begun
      self.pids = pids
      let processes = try [#require(try mounted.keeper()), #require(try mounted.daemon())]
      for process in processes { #expect(kill(process, SIGSTOP) == 0) }
      #expect(write(pipe, String(repeating: "\n", count: count), count) == count)
      let end = isOver
      let thread = try JoinableThread(name: "holders") {
        _ = end.wait(milliseconds: 30_000) { $0 }
        for process in processes.reversed() { kill(process, SIGCONT) }
        for pid in pids { kill(pid, SIGKILL) }
      }
      thread.detach()
      for pid in pids { #expect(eventually { isHolding(pid) }) }
    }

    func isHolding(_ pid: Int32) -> Bool {
      FD.text(of: "/proc/\(pid)/stat", limit: 4096)?.contains(") D ") == true
    }

    func end() throws {
      isOver.change { $0 = true }
      for pid in pids { #expect(try Program.waitForEnd(pid)) }
      // Nobody can remove the account while its daemon runs.
      #expect(try mounted.unmount().ending == .ok)
    }

    deinit { isOver.change { $0 = true } }
  }

  @Test func commandsWaitForNoProcessThatHides() throws {
    let mounted = try MountedStore.mounted()
    for name in ["one", "two"] {
      try mounted.temporary.makeDirectory(name)
      let added = try mounted.run(
        "volume", "add", mounted.temporary.appending(name), "--store", mounted.point)
      try #require(added.status == 0, "\(added)")
    }
    let busy = try Program.run(["sh", "-c", "cd \(mounted.point); sleep 600 >/dev/null 2>&1 & echo $!"])
    let user = try #require(Int32(busy.output.dropLast()), "\(busy)")
    defer { kill(user, SIGKILL) }
    let holders = try Holders(count: 2)
    // Whoever reads it waits, so that this is the case that is meant.
    for pid in holders.pids {
      let read = try Program.run(["timeout", "-s", "KILL", "0.3", "cat", "/proc/\(pid)/maps"])
      #expect(read.status == 137, "\(read)")
    }
    for name in ["one", "two"] {
      let ejected = try mounted.run("volume", "eject", name, "--store", mounted.point)
      #expect(ejected.status == 0, "\(ejected)")
    }
    let refused = try mounted.run("unmount", mounted.point)
    #expect(refused.ending == .busy && refused.errors.contains("pid \(user) (sleep): working directory"))
    for pid in holders.pids {
      #expect(refused.errors.contains("pid \(pid) (python3) does not let itself be looked at"), "\(refused)")
      #expect(holders.isHolding(pid), "it has not waited until the process let go")
    }
    try holders.end()
    kill(user, SIGKILL)
    #expect(try Program.waitForEnd(user))
    #expect(try mounted.unmount().ending == .ok)
  }
}

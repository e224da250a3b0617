// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Processes of one user that do not let themselves be looked at: they hold the locks of their memory maps.
///
/// They unmap changed files of a filesystem that does not answer. They let go at the end, or when somebody
/// has waited for them for too long, so that a test of who waits for them has an end. Meanwhile ps(1) and
/// pgrep(1) wait for them.
final class HidingProcesses: Sendable {
  let pids: [Int32]
  private let mounted: MountedStore
  private let user: TemporaryAccount
  /// What they wait for; as long as it is open, none of them sees its end.
  private let pipe: SharedFD
  private let isOver = Condition(false)

  var account: Account { user.account }

  /// Longer than all commands of a test take together that don't wait.
  private static let limit = 90_000

  private static let script = """
    import ctypes, os, sys, time
    libc = ctypes.CDLL(None)
    map = libc.mmap
    map.restype, map.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_long] * 4
    libc.msync.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
    os.ftruncate(file, 65536)
    # Shared, and writable.
    memory = map(None, 65536, 3, 1, file, 0)
    ctypes.memset(memory, 120, 65536)
    # Written at once, or the kernel might be about to write it when they are to hide.
    assert libc.msync(memory, 65536, 4) == 0
    open(sys.argv[1] + ".ready", "w").close()
    # One byte, so that the next one gets its own.
    os.read(0, 1)
    ctypes.memset(memory, 121, 65536)
    # Something else in its place, at once.
    map(memory, 65536, 1, 0x32, -1, 0)
    time.sleep(600)
    """

  /// Starts them; until ``hide()`` they are processes like any other.
  init(count: Int = 1) throws {
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
    let opened = open(go, O_RDWR | O_CLOEXEC)
    guard opened >= 0 else { throw Errno.last }
    pipe = SharedFD(OwnedFD(owning: opened))
    var begun: [Int32] = []
    for number in 0..<count {
      let result = try Program.run([
        "setpriv", "--reuid=\(account.uid)", "--regid=\(account.gid)", "--clear-groups", "sh", "-c",
        "/usr/bin/python3 -c '\(Self.script)' \(place)/\(number) <\(go) >/dev/null 2>&1 & echo $!",
      ])
      begun.append(try #require(Int32(result.output.dropLast()), "\(result)"))
      #expect(eventually { access(mounted.backing("Users/Shared/\(number).ready"), F_OK) == 0 })
    }
    pids = begun
  }

  /// From here on nobody can look at them.
  func hide() throws {
    let processes = try [#require(try mounted.keeper()), #require(try mounted.daemon())]
    let (end, pids) = (isOver, pids)
    let thread = try JoinableThread(name: "hiding") {
      _ = end.wait(milliseconds: Self.limit) { $0 }
      for process in processes.reversed() { kill(process, SIGCONT) }
      for pid in pids { kill(pid, SIGKILL) }
    }
    thread.detach()
    for process in processes {
      #expect(kill(process, SIGSTOP) == 0)
      // Until then it answers.
      #expect(eventually { isStopped(process) })
    }
    try pipe.use { (pipe) throws(Errno) in
      try pipe.writeAll(String(repeating: "\n", count: pids.count).utf8)
    }
    for pid in pids {
      // Whoever reads it waits, so that this is the case that is meant.
      #expect(
        try eventually {
          try Program.run(["timeout", "-s", "KILL", "0.5", "cat", "/proc/\(pid)/maps"]).status == 137
        })
    }
    expectToHide()
  }

  /// Whether all threads of a process have been stopped.
  private func isStopped(_ process: Int32) -> Bool {
    let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task")) ?? []
    return !threads.isEmpty
      && threads.allSatisfy {
        FD.text(of: "/proc/\(process)/task/\($0)/stat", limit: 4096)?.contains(") T ") == true
      }
  }

  /// Whether a process holds the lock still.
  func isHolding(_ pid: Int32) -> Bool {
    FD.text(of: "/proc/\(pid)/stat", limit: 4096)?.contains(") D ") == true
  }

  /// Nobody has waited until they let go.
  func expectToHide(location: SourceLocation = #_sourceLocation) {
    for pid in pids {
      #expect(isHolding(pid), "somebody has waited until the process let go", sourceLocation: location)
    }
  }

  func end() throws {
    isOver.change { $0 = true }
    for pid in pids {
      kill(pid, SIGKILL)
      #expect(try Program.waitForEnd(pid))
    }
    // Nobody can remove the account while its daemon runs.
    #expect(try mounted.unmount().ending == .ok)
  }

  deinit { isOver.change { $0 = true } }
}

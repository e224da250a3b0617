// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Whoever keeps a mount busy is named, whatever it is that they do there, and however many they are.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct BusyMountTests {
  /// The only thing that a process does in the mount.
  enum Use: CaseIterable {
    case opens, maps, stands, runs

    /// A script that becomes that process, in `$place`; it writes into `$ready` when it is ready, or begins.
    var script: String {
      switch self {
      case .opens: "exec 3<\"$place/file\"; echo >\"$ready\"; exec sleep 600"
      case .maps:
        """
        exec /usr/bin/python3 -c 'import ctypes, os, sys, time
        # The module of that name would keep the file open.
        map = ctypes.CDLL(None).mmap
        map.restype, map.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_long] * 4
        file = os.open(sys.argv[1], os.O_RDONLY)
        memory = map(None, 4096, 1, 1, file, 0)
        os.close(file)
        assert ctypes.string_at(memory, 4) == b"text"
        open(sys.argv[2], "w").write("x")
        time.sleep(600)' "$place/file" "$ready"
        """
      case .stands: "cd \"$place\"; echo >\"$ready\"; exec sleep 600"
      case .runs: "echo >\"$ready\"; exec \"$place/program\" 600"
      }
    }

    func words(_ pid: Int32, _ place: String) -> String {
      switch self {
      case .opens: "pid \(pid) (sleep): has \(place)/file open"
      case .maps: "pid \(pid) (python3): maps \(place)/file"
      case .stands: "pid \(pid) (sleep): working directory \(place)"
      case .runs: "pid \(pid) (program): runs a program \(place)/program, maps \(place)/program"
      }
    }
  }

  private static let user: UInt32 = 54321

  private func shell(_ script: String, _ mounted: MountedStore) throws -> ProgramResult {
    let user = mounted.owner?.uid ?? Self.user
    let become = ["setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups"]
    let environment = [
      "place": mounted.path("Users/Shared/used"), "ready": mounted.temporary.appending("ready"),
    ]
    return try Program.run(become + ["sh", "-c", script], environment: environment)
  }

  /// Starts a process in the background; it does what it is for when this returns.
  private func start(_ use: Use, in mounted: MountedStore) throws -> Int32 {
    unlink(mounted.temporary.appending("ready"))
    let result = try shell("{ \(use.script)\n} >/dev/null 2>&1 & echo $!", mounted)
    let text = result.output.split(separator: "\n").first.map(String.init) ?? ""
    let pid = try #require(Int32(text), "\(result)")
    let isThere = eventually {
      let name = FD.text(of: "/proc/\(pid)/comm", limit: 64) ?? ""
      return access(mounted.temporary.appending("ready"), F_OK) == 0 && name != "sh\n"
    }
    #expect(isThere)
    return pid
  }

  private func end(_ pid: Int32) throws {
    #expect(kill(pid, SIGKILL) == 0)
    #expect(try Program.waitForEnd(pid))
  }

  @Test(arguments: [false, true], Use.allCases)
  func whoeverKeepsItBusyIsNamed(rootless: Bool, use: Use) throws {
    let mounted = try MountedStore(asNobody: rootless)
    try mounted.mount()
    let place = mounted.path("Users/Shared/used")
    let made = try shell("mkdir $place && cp /bin/sleep $place/program && echo text >$place/file", mounted)
    try #require(made.ending == .ok, "\(made)")
    var pids: [Int32] = []
    defer { for pid in pids { kill(pid, SIGKILL) } }
    for _ in 0..<2 { pids.append(try start(use, in: mounted)) }
    for count in [2, 1] {
      let refused = try mounted.run("unmount", mounted.point)
      // What other tests start at this moment has copies of all mounts for a while.
      let lines = refused.errors.split(separator: "\n").map(String.init)
        .filter { !$0.hasSuffix("in another mount namespace") }
      #expect(refused.ending == .busy && lines.count == count + 2, "\(refused)")
      #expect(lines.first == "insula: \(mounted.point) is busy and stays mounted:")
      for pid in pids { #expect(lines.contains("  " + use.words(pid, place)), "\(refused)") }
      #expect(lines.last?.contains("insula unmount --lazy \(mounted.point)") == true, "\(refused)")
      #expect(mounted.isMounted)
      try end(pids.removeFirst())
    }
    let result = try mounted.unmount()
    #expect(result.ending == .ok && !mounted.isMounted, "\(result)")
  }
}

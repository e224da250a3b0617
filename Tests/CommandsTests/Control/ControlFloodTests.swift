// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A user who abuses the control socket of a daemon is the only one who notices.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), .serialized)
struct ControlFloodTests {
  private static let flood = Repository.root + "/Tests/Fixtures/flood.py"

  /// How long the slowest of some questions takes for others, in seconds.
  private func slowest(_ mounted: MountedStore) throws -> Double {
    let client = [Program.insula, "status", mounted.store]
    var slowest = 0.0
    for _ in 0..<4 {
      for before in [[], ["setpriv", "--reuid=65533", "--regid=65533", "--clear-groups"]] {
        let start = monotonicNanoseconds()
        let result = try Program.run(["timeout", "20"] + before + client)
        slowest = max(slowest, Double(monotonicNanoseconds() - start) / 1e9)
        #expect(result.status == 0, "\(result.errors)")
      }
    }
    return slowest
  }

  @Test(
    arguments: [
      "backlog", "connect", "silent", "half", "bytes", "garbage", "deaf", "asking", "questions",
      "descriptors", "groups",
    ])
  func othersAreAnsweredAsEver(way: String) throws {
    let mounted = try MountedStore.mounted()
    let socket = try mounted.socket()
    let alone = try slowest(mounted)
    let before = try mounted.descriptors()
    let script = try String(contentsOfFile: Self.flood, encoding: .utf8)
    let copy = try mounted.temporary.write(script, to: "flood.py")
    #expect(chmod(copy, 0o644) == 0)
    let flooding = Process()
    flooding.executableURL = URL(fileURLWithPath: "/usr/bin/setpriv")
    // Only root can give groups; that one becomes the user by itself.
    let become = way == "groups" ? [] : ["--reuid=65534", "--regid=65534"]
    flooding.arguments =
      become + ["--clear-groups", "timeout", "--signal=KILL", "60"]
      + ["/usr/bin/python3", copy, socket, way, "4"]
    try Program.withSignalsUnblocked { try flooding.run() }
    usleep(1_000_000)
    #expect(flooding.isRunning)
    let meanwhile = try slowest(mounted)
    // timeout(1) has made a group of its own for all of them.
    kill(-flooding.processIdentifier, SIGKILL)
    flooding.waitUntilExit()
    // The other processes compete for the CPUs as well.
    #expect(meanwhile < max(alone * 8, 3), "alone \(alone) s, meanwhile \(meanwhile) s")
    if way == "silent" {
      let status = try mounted.run("status", mounted.store).output
      #expect(status.contains("over budget") && status.contains("user=65534"), "\(status)")
      let log = try String(contentsOfFile: mounted.store + "/state/daemon.log", encoding: .utf8)
      #expect(
        log.split(separator: "\n").count {
          $0.contains("user 65534 has reached the limit for control requests")
        } <= 2)
      #expect(log.contains("user 65534 has reached the limit for control requests"))
    }
    #expect(try eventually { try mounted.descriptors() <= before + 4 })
    #expect(try mounted.unmount().status == 0)
  }

  /// Whatever callers have left of the descriptors, the next worker gets its own.
  @Test func connectionsKeepNoWorkerFromBeginning() throws {
    let mounted = try MountedStore.mounted(before: ["prlimit", "--nofile=300:300"])
    let script = """
      import os, signal, socket, subprocess, sys, time
      path, worker, program, store = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
      children = []
      for uid in range(61001, 61011):
          told, tells = os.pipe()
          child = os.fork()
          if child == 0:
              os.setgroups([]); os.setresgid(uid, uid, uid); os.setresuid(uid, uid, uid)
              kept = []
              for _ in range(60):
                  s = socket.socket(socket.AF_UNIX); s.settimeout(10)
                  try: s.connect(path)
                  except OSError: break
                  kept.append(s)
              os.write(tells, b"x")
              signal.pause()
          children.append(child)
          os.read(told, 1)
      for _ in range(1000):
          count = len(os.listdir(f"/proc/{worker}/fd"))
          if count >= 295: break
          time.sleep(0.01)
      os.kill(worker, signal.SIGKILL)
      status = subprocess.run([program, "status", store], timeout=60, capture_output=True, text=True)
      for child in children:
          os.kill(child, signal.SIGKILL); os.waitpid(child, 0)
      print(count >= 295, status.returncode, status.stderr)
      """
    let copy = try mounted.temporary.write(script, to: "crowd.py")
    let words = [
      "timeout", "120", "python3", copy, try mounted.socket(), String(try mounted.count("pid")),
      Program.insula, mounted.store,
    ]
    let result = try Program.run(words)
    #expect(result.output == "True 0 \n", "\(result)")
    let log = try String(contentsOfFile: mounted.store + "/state/daemon.log", encoding: .utf8)
    #expect(log.contains("serving again after") && !log.contains("can't serve on"), "\(log)")
    #expect(try mounted.unmount().status == 0)
  }
}

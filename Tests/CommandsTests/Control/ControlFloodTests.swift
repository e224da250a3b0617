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
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What a program of a user's that serves a volume takes of what the daemon needs.
@Suite(
  .enabled(if: EncryptedFixture.isPossible, "mounting needs root and /dev/fuse, and gocryptfs"))
struct EngineShareTests {
  private static func words(_ path: String) -> [String] {
    (FD.text(of: path, limit: 1 << 16) ?? "").split(separator: "\n").map(String.init)
  }

  private static func memoryScore(_ pid: Int32) -> Int? {
    words("/proc/\(pid)/oom_score_adj").first.flatMap { Int($0) }
  }

  /// When memory is short the kernel ends the program, and not the worker that serves everybody.
  @Test func itEndsBeforeTheDaemonForMemory() throws {
    let fixture = try EncryptedFixture()
    try fixture.expect("create one", "")
    let worker = try #require(try fixture.run.mounted.daemon())
    let programs = try fixture.programs()
    try #require(!programs.isEmpty)
    for program in programs {
      let (its, workers) = (try #require(Self.memoryScore(program)), try #require(Self.memoryScore(worker)))
      #expect(its >= 200 && its > workers, "\(its), the worker's is \(workers)")
    }
  }

  /// All that a user starts there is at most half of what there may be beside the daemon.
  @Test func itLeavesTasksToOthers() throws {
    let groups = "/sys/fs/cgroup/pids"
    let place = "\(groups)/insula-test-\(ProcessID.own)"
    guard mkdir(place, 0o755) == 0 else {
      return print("skipped: no control groups that limit tasks can be made in \(groups)")
    }
    defer { rmdir(place) }
    try #require(access(place + "/pids.max", W_OK) == 0)
    let fixture = try EncryptedFixture()
    let mounted = fixture.run.mounted
    let keeper = try #require(try mounted.keeper())
    func move(_ pids: [Substring], to group: String) throws {
      for pid in pids { _ = try Program.run(["sh", "-c", "echo \(pid) >\(group)/cgroup.procs"]) }
    }
    let children = Self.words("/proc/\(keeper)/task/\(keeper)/children").flatMap { $0.split(separator: " ") }
    defer { try? move(Self.words(place + "/cgroup.procs").map { $0[...] }, to: groups) }
    let limit = try Program.run(["sh", "-c", "echo 500 >\(place)/pids.max"])
    try #require(limit.status == 0, "\(limit)")
    try move(["\(keeper)"] + children, to: place)
    try fixture.expect("create one", "")
    let programs = try fixture.programs()
    try #require(!programs.isEmpty)
    for program in programs {
      let line = Self.words("/proc/\(program)/limits").first { $0.hasPrefix("Max processes") }
      let fields = line?.split(separator: " ").compactMap { Int($0) } ?? []
      #expect(fields == [250, 250], "\(line ?? "no limit")")
    }
    try fixture.expect("volume lock one", "")
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Glibc
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing

/// Cgroups of apps, in a directory that only looks like one of the kernel's.
@Suite struct AppCgroupTests {
  private let temporary: TemporaryDirectory

  init() throws {
    temporary = try TemporaryDirectory()
    try temporary.makeDirectory("slice")
    try write(controllers: "cpu memory pids", active: "", processes: "\(getpid())")
  }

  private func write(controllers: String, active: String, processes: String) throws {
    try temporary.write(controllers, to: "slice/cgroup.controllers")
    try temporary.write(active, to: "slice/cgroup.subtree_control")
    try temporary.write(processes, to: "slice/cgroup.procs")
  }

  private func make(_ change: (inout ResourceLimits) -> Void = { $0.memory = 64 << 20 }) throws -> Errno? {
    var limits = ResourceLimits()
    change(&limits)
    let root = try temporary.open()
    do throws(Errno) {
      _ = try AppCgroup(limits, ours: [getpid()], path: "slice", below: root.fd)
      return nil
    } catch {
      return error
    }
  }

  private static let files = ["cgroup.controllers", "cgroup.procs", "cgroup.subtree_control"]

  @Test func nothingIsChangedWhereOthersAre() throws {
    try write(controllers: "memory", active: "", processes: "\(getpid())\n1")
    #expect(try make() == .EBUSY)
    #expect(try temporary.names(in: "slice") == Self.files)
    #expect(temporary.text(of: "slice/cgroup.subtree_control")?.isEmpty == true)
    #expect(temporary.text(of: "slice/cgroup.procs") == "\(getpid())\n1")
  }

  @Test func nothingIsMadeWhereNothingIsLimited() throws {
    #expect(try make { $0.openFiles = 64 } == .ENOENT)
    #expect(try make { _ in } == .ENOENT)
    try write(controllers: "hugetlb", active: "", processes: "\(getpid())")
    #expect(try make() == .ENOENT)
    #expect(try temporary.names(in: "slice") == Self.files)
  }

  /// This directory makes no files in new ones, as the kernel would.
  @Test func whatCantBeFinishedIsTakenBack() throws {
    #expect(try make() == .ENOENT)
    #expect(try temporary.names(in: "slice") == Self.files)
    try write(controllers: "memory", active: "memory", processes: "1")
    #expect(try make() == .ENOENT)
    #expect(try temporary.names(in: "slice") == Self.files)
  }

  @Test func whatTheKilledHaveLeftIsCleared() throws {
    // No process has that number (PID_MAX_LIMIT).
    let gone = 4_194_305
    for name in ["insula-app-\(gone)", "insula-run-\(gone)", "insula-app-\(gone + 1)"] {
      try temporary.makeDirectory("slice/" + name)
    }
    try temporary.makeDirectory("slice/insula-app-\(gone + 1)/used")
    let others = ["insula-app-1", "insula-app-x", "insula-app-", "someone-\(gone)", "insula-apps"]
    for name in others { try temporary.makeDirectory("slice/" + name) }
    _ = try make()
    #expect(
      try temporary.names(in: "slice").filter { $0.contains("-") }.sorted()
        == (others + ["insula-app-\(gone + 1)"]).sorted())
  }

  @Test(arguments: ["..", "slice/..", "slice/link", "nothing"])
  func otherPathsAreNotWalked(path: String) throws {
    symlink("/", temporary.appending("slice/link"))
    var limits = ResourceLimits()
    limits.memory = 64 << 20
    let root = try temporary.open()
    #expect(throws: Errno.self) { _ = try AppCgroup(limits, ours: [], path: path, below: root.fd) }
  }
}

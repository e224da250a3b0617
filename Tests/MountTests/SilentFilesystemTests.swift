// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A user's own filesystem that never answers keeps no worker from being replaced, and no store from being
/// mounted again.
///
/// Threads that ask it are left by neither a signal nor a timeout.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), .mayTake(seconds: 240))
struct SilentFilesystemTests {
  enum Way: String, CaseIterable { case file, directory }
  enum End: CaseIterable { case killed, restarted, unmounted }

  /// A user who passes the daemon something that it will wait for.
  private final class Caller {
    private let process = Process()
    private let input = Pipe()

    init(_ way: Way, to mounted: MountedStore) throws {
      let program = mounted.temporary.appending("silent-filesystem")
      let built = try Program.run([
        "sh", "-c", "gcc -Wall -Werror -o \"$0\" \"$1\" $(pkg-config --cflags --libs fuse3)", program,
        Checkout.path("Tests/Fixtures/silent-filesystem.c"),
      ])
      try #require(built.status == 0, "\(built.errors)")
      let script = try mounted.temporary.write(
        String(contentsOfFile: Checkout.path("Tests/Fixtures/pass-from-silence.py"), encoding: .utf8),
        to: "pass.py")
      try #require(chmod(script, 0o644) == 0 && chmod(program, 0o755) == 0)
      let output = mounted.temporary.appending("passed")
      process.executableURL = URL(fileURLWithPath: "/usr/bin/setpriv")
      let namespace = way == .directory ? ["unshare", "-Urmp", "--fork", "--kill-child"] : []
      process.arguments =
        ["--reuid=65534", "--regid=65534", "--clear-groups"] + namespace
        + ["/usr/bin/python3", script, program, try mounted.socket(), way.rawValue]
      process.environment = ["PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR": mounted.temporary.path]
      process.standardInput = input
      try #require(FileManager.default.createFile(atPath: output, contents: nil))
      process.standardOutput = FileHandle(forWritingAtPath: output)
      try Program.withSignalsUnblocked { try process.run() }
      try #require(eventually { FD.text(of: output, limit: 100) == "passed\n" || !process.isRunning })
      try #require(process.isRunning)
    }

    func end() throws {
      try input.fileHandleForWriting.close()
      process.waitUntilExit()
    }
  }

  @Test(arguments: Way.allCases, End.allCases) func nobodyElseWaits(way: Way, end: End) throws {
    guard KernelRelease.own >= KernelRelease(6, 9) else {
      return print("skipped: before Linux 6.9 no daemon is replaced")
    }
    let mounted = try MountedStore.mounted()
    let worker = try #require(try mounted.daemon())
    let caller = try Caller(way, to: mounted)
    #expect(eventually { waitsForFilesystem(worker) })
    switch end {
    case .killed: #expect(kill(worker, SIGKILL) == 0)
    case .restarted:
      // The threads share the descriptors that another program would begin with.
      let restarted = try mounted.run("restart", mounted.store)
      #expect(restarted.ending == .failed && restarted.errors.contains("or in a minute"), "\(restarted)")
    case .unmounted: break
    }
    if end != .unmounted {
      let listed = try Program.run(["timeout", "60", "ls", mounted.path("Users")])
      #expect(listed.output == "Shared\n", "\(listed)")
      #expect(try mounted.daemon().map { $0 != worker } == true)
    }
    // Neither the store nor the mount point is kept by the threads that are left.
    #expect(try mounted.unmount().status == 0)
    let again = try mounted.run("mount", mounted.store, mounted.point)
    #expect(again.status == 0, "\(again.errors)")
    #expect(try mounted.unmount().status == 0)
    try caller.end()
    #expect(eventually { !waitsForFilesystem(worker) })
  }
}

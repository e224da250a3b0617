// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Synchronization
internal import TestSupport
internal import Testing

@Suite(.enabled(if: Program.isRoot, "other users' processes are seen by root"), .serialized)
struct WorkingDirectoriesTests {
  private let temporary: TemporaryDirectory
  private let inode: UInt64
  private let device: DeviceNumber

  init() throws {
    temporary = try TemporaryDirectory()
    let directory = try temporary.open()
    let status = try directory.fd.status()
    inode = UInt64(status.st_ino)
    device = DeviceNumber(UInt64(status.st_dev))
  }

  private func read() throws -> WorkingDirectories {
    // A busy machine may take its time.
    try #require(WorkingDirectories.read(on: device, isFirstElsewhere: true, milliseconds: 60_000))
  }
  private func isSeen() throws -> Bool { try read().inodes.contains(inode) }

  /// Someone who is there while `body` runs, by a script that says so.
  private func withProcess(_ words: [String], _ body: (Int32) throws -> Void) throws {
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = words
    process.standardOutput = output
    process.currentDirectoryURL = URL(fileURLWithPath: "/")
    try Program.withSignalsUnblocked { try process.run() }
    defer {
      kill(process.processIdentifier, SIGKILL)
      process.waitUntilExit()
    }
    #expect(output.fileHandleForReading.availableData.count > 0)
    try body(process.processIdentifier)
  }

  @Test func processesAreSeenWhereTheyAre() throws {
    #expect(try !isSeen())
    let there = ["sh", "-c", "cd \"$0\" && echo ready && exec sleep 1000", temporary.path]
    try withProcess(["setpriv", "--reuid=54321", "--clear-groups"] + there) { pid in
      let seen = try read()
      #expect(seen.inodes.contains(inode))
      #expect(seen.isOnly(pid, in: inode) && !seen.isOnly(ProcessID.own, in: inode))
      try withProcess(there) { other in
        let both = try read()
        #expect(!both.isOnly(pid, in: inode) && !both.isOnly(other, in: inode))
      }
    }
    #expect(try !isSeen())
  }

  @Test func processIsSeenThroughAnotherMountInAnotherNamespace() throws {
    let script = "mount --bind \"$0\" /mnt && cd /mnt && echo ready && exec sleep 1000"
    try withProcess(["unshare", "-m", "sh", "-c", script, temporary.path]) { _ in
      let seen = try read()
      #expect(seen.inodes.contains(inode))
    }
  }

  /// Corresponds to `unshare(2)` with CLONE_FS.
  @Test func threadWithADirectoryOfItsOwnIsSeen() throws {
    let isThere = try Wakeup()
    let mayGo = try Wakeup()
    let (there, go, path) = (isThere.fd, mayGo.fd, temporary.path)
    let result = Atomic<Int32>(-1)
    let thread = try JoinableThread(name: "elsewhere") {
      result.store(clx_unshare(0x200) == 0 ? chdir(path) : -1, ordering: .sequentiallyConsistent)
      var one: UInt64 = 1
      _ = write(there.raw, &one, 8)
      _ = try? go.waitUntilReadable(milliseconds: patience)
    }
    let hasStarted = try there.waitUntilReadable(milliseconds: patience)
    #expect(hasStarted)
    let error = result.load(ordering: .sequentiallyConsistent)
    #expect(error == 0)
    let seen = try read()
    mayGo.ring()
    thread.join()
    #expect(seen.inodes.contains(inode))
    #expect(try !isSeen())
    // Nobody waits any more; both are to live until here.
    isThere.ring()
    mayGo.ring()
  }

  /// Whoever may not look everywhere learns that, and not that nobody is there.
  @Test func nothingIsKnownWithoutTheRightToLook() throws {
    let result = Atomic<Bool>(false)
    let device = device
    let thread = try JoinableThread(name: "nobody") {
      // Corresponds to `CAP_SYS_PTRACE`.
      guard clx_set_effective(19, 0) == 0 else { return }
      let seen = WorkingDirectories.read(on: device, isFirstElsewhere: true, milliseconds: 60_000)
      result.store(seen == nil, ordering: .sequentiallyConsistent)
    }
    thread.join()
    let isRefused = result.load(ordering: .sequentiallyConsistent)
    #expect(isRefused)
  }
}

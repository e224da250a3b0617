// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What one user does to others, on a real mount.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct FairShareTests {
  @Test(arguments: [nil, "nopassthrough"])
  func longCopiesComeInPieces(options: String?) throws {
    let mounted = try MountedStore.mounted(options: options)
    let base = mounted.path("Users/Shared/")
    let source = OwnedFD(owning: try check(clx_open(base + "source", O_RDWR | O_CREAT, 0o644)))
    let size = 40 << 20
    #expect(ftruncate(source.fd.raw, off_t(size)) == 0)
    try check(pwrite(source.fd.raw, "end", 3, off_t(size - 3)))
    let target = OwnedFD(owning: try check(clx_open(base + "target", O_RDWR | O_CREAT, 0o644)))
    let copied = try source.fd.copyRange(at: 0, to: target.fd, at: 0, length: size, flags: 0)
    #expect(copied > 0 && copied <= 16 << 20)
    // Programs go on where it ends.
    for words in [["cp", base + "source", base + "copy"], ["cmp", base + "source", base + "copy"]] {
      let result = try Program.run(words)
      #expect(result.status == 0, "\(result.errors)")
    }
  }

  @Test func kernelListsNoLocks() throws {
    let mounted = try MountedStore.mounted()
    let path = mounted.path("Users/Shared/locked")
    let client = try Client()
    #expect(try client.errno("open", path, "\(O_RDWR | O_CREAT)", "\(0o666)") == 0)
    #expect(try client.errno("lock", "posix", "0", "\(F_WRLCK)", "0", "10") == 0)
    var status = stat()
    #expect(stat(path, &status) == 0)
    let listed = try #require(FD.text(of: "/proc/locks", limit: 1 << 20))
    #expect(!listed.contains(":\(status.st_ino) "))
    #expect(try mounted.count("locks") == 1)
  }

  /// In the log and in what `insula status` prints.
  @Test func whoeverIsOverBudgetIsTold() throws {
    let mounted = try MountedStore.mounted(options: "nopassthrough", before: ["prlimit", "--nofile=512:512"])
    let directories = ["one", "other"].map { name in
      let directory = mounted.path("Users/Shared/" + name)
      #expect(mkdir(directory, 0o755) == 0 && chmod(directory, 0o777) == 0)
      return directory
    }
    let client = try Client(uid: 54321)
    let opened = try #require(
      try client.run("open many", directories[0], "200").words.first.flatMap { Int($0) })
    #expect((10..<150).contains(opened))
    // Nobody else is refused anything.
    let other = try Client(uid: 54322)
    #expect(try other.run("open many", directories[1], "10").words.first == "10")
    let status = try mounted.run("status", mounted.point)
    #expect(status.output.contains("user=54321") && !status.output.contains("user=54322"))
    #expect(try client.errno("close all") == 0)
    #expect(try eventually { try client.run("open many", directories[0], "5").words.first == "5" })
  }
}

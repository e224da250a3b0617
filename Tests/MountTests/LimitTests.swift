// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Tables and disks that are full.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), .serialized)
struct LimitTests {
  @Test(arguments: [nil, "nopassthrough", "nohandles,nopassthrough"])
  func fewDescriptorsAreEnough(options: String?) throws {
    let mounted = try MountedStore.mounted(options: options, before: ["prlimit", "--nofile=256:256"])
    let directory = mounted.path("Users/Shared/dir")
    #expect(mkdir(directory, 0o755) == 0)
    let nodes = try stableNodeCount(mounted, atMost: .max)
    // Seen by name and by listing; more than the daemon could have open.
    for number in 0..<2000 {
      let raw = try check(creat("\(directory)/seen-\(number)", 0o644))
      close(raw)
    }
    #expect(try Program.run(["ls", "-l", directory]).output.split(separator: "\n").count == 2001)
    let hasPassthrough = try mounted.flag("passthrough")
    let client = try Client()
    let answer = try client.run("open many", directory, "600")
    let opened = try #require(answer.words.first.flatMap { Int($0) })
    if hasPassthrough {
      #expect(opened == 600, "\(answer)")
    } else {
      // The daemon itself has each file open here, so some must be refused, by the right name.
      #expect(opened >= 60 && opened < 256)
      let errors = answer.words.dropFirst().joined().split(separator: " ").compactMap {
        $0.split(separator: "=").first
      }
      #expect(!errors.isEmpty && Set(errors).isSubset(of: ["\(EMFILE)", "\(ENFILE)"]), "\(answer)")
    }
    #expect(try mounted.count("openFiles") == opened)
    #expect(try client.errno("close all") == 0)
    for number in stride(from: 0, to: 2000, by: 7) {
      #expect(access("\(directory)/seen-\(number)", F_OK) == 0)
    }
    #expect(try client.run("open many", directory, "50").words.first == "50")
    #expect(try client.errno("close all") == 0)
    let removed = try Program.run(["rm", "-r", directory])
    #expect(removed.status == 0, "\(removed.errors)")
    #expect(try stableNodeCount(mounted, atMost: nodes) <= nodes)
    for key in ["openFiles", "openDirectories", "locks"] { #expect(try mounted.count(key) == 0, "\(key)") }
  }

  /// How many nodes there are when the kernel has forgotten what it does not use.
  private func stableNodeCount(_ mounted: MountedStore, atMost limit: Int) throws -> Int {
    var nodes = Int.max
    _ = try eventually {
      // To mount it again makes the kernel forget what it knows of this mount, and of no other test's.
      try check(mount("none", mounted.point, "fuse", UInt(MS_REMOUNT), nil))
      let now = try mounted.count("nodes")
      let open = try mounted.count("openFiles") + mounted.count("openDirectories")
      defer { nodes = now }
      return open == 0 && now <= limit && (now == nodes || limit != .max)
    }
    return nodes
  }

  @Test func fullDiskLosesNothing() throws {
    let disk = try Ext4(megabytes: 16)
    let mounted = try MountedStore.mounted(store: disk.path + "/store")
    let base = mounted.path("Users/Shared/")
    let precious = String(repeating: "precious ", count: 1000)
    try writeAll(precious, to: base + "precious")
    for name in ["a", "b"] { try writeAll("", to: base + name) }

    let filler = OwnedFD(owning: try check(clx_open(base + "filler", O_WRONLY | O_CREAT, 0o644)))
    let block = Array(repeating: UInt8(7), count: 4096)
    var written = 0
    let full = Result { () throws(Errno) in
      while written < 64 << 20 {
        var error: Errno?
        block.withUnsafeBytes { bytes in
          do throws(Errno) { written += try filler.fd.write(bytes) } catch let failure { error = failure }
        }
        if let error { throw error }
      }
    }
    #expect(throws: Errno.ENOSPC) { try full.get() }
    #expect(written > 1 << 20)
    // Names without contents take room too, sooner or later.
    var made = 0
    var last = Errno(0)
    while made < 100_000 {
      let raw = creat("\(base)name-\(made)-\(String(repeating: "x", count: 200))", 0o644)
      if raw < 0 {
        last = Errno.last
        break
      }
      close(raw)
      made += 1
    }
    #expect(last == .ENOSPC)
    #expect(mkdir(base + "dir", 0o755) == -1 && Errno.last == .ENOSPC)
    let target = String(repeating: "t", count: 1000)
    #expect(symlink(target, base + "link") == -1 && Errno.last == .ENOSPC)
    #expect(
      setxattr(base + "precious", "user.large", target + target, 2000, 0) == -1 && Errno.last == .ENOSPC)
    try expectNoRoom(base + "a")
    // A rename may need room for the longer name: then nothing has happened.
    let renamed = rename(base + "b", base + String(repeating: "n", count: 255))
    #expect(renamed == 0 || Errno.last == .ENOSPC)
    #expect((access(base + "b", F_OK) == 0) == (renamed == -1))
    #expect(FD.text(of: base + "precious", limit: 1 << 20) == precious)

    #expect(unlink(base + "filler") == 0 && truncate(base + "a", 0) == 0)
    #expect(try filler.fd.status().st_nlink == 0)
    #expect(ftruncate(filler.fd.raw, 0) == 0)
    try filler.close()
    #expect(mkdir(base + "dir", 0o755) == 0 && symlink(target, base + "link") == 0)
    try writeAll(precious, to: base + "again")
    #expect(FD.text(of: base + "again", limit: 1 << 20) == precious)
    #expect(FD.text(of: base + "precious", limit: 1 << 20) == precious)
    #expect(try mounted.unmount().status == 0)
    #expect(try mounted.run("check", mounted.store).status == 0)
  }

  private func writeAll(_ text: String, to path: String) throws {
    let file = OwnedFD(owning: try check(clx_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o644)))
    try file.fd.writeAll(text.utf8)
  }

  private func expectNoRoom(_ path: String) throws {
    let file = OwnedFD(owning: try check(clx_open(path, O_WRONLY, 0)))
    #expect(throws: Errno.ENOSPC) { try file.fd.writeAll(Array(repeating: UInt8(1), count: 1 << 20)) }
    #expect(throws: Errno.ENOSPC) { try file.fd.allocate(mode: 0, offset: 0, length: 8 << 20) }
  }
}

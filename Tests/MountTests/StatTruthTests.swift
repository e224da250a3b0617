// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What is told of a file is what holds now, and costs no more requests than it must.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), .serialized)
struct StatTruthTests {
  private func status(_ path: String) throws -> FileStatus {
    try path.withName { (name) throws(Errno) in try FD.cwd.status(of: name) }
  }

  private func isLater(_ a: FileStatus, than b: FileStatus) -> Bool {
    (a.st_mtim.tv_sec, a.st_mtim.tv_nsec) > (b.st_mtim.tv_sec, b.st_mtim.tv_nsec)
  }

  @Test(arguments: [nil, "nopassthrough"])
  func statTellsTheTruthWhileOthersWrite(options: String?) throws {
    let mounted = try MountedStore.mounted(options: options)
    let path = mounted.path("Users/Shared/file")
    let writer = try Client()
    #expect(try writer.errno("create", path, "\(0o644)") == 0)
    var before = try status(path)
    for round in 1...50 {
      #expect(try writer.errno("write", "0", "0123456789") == 0)
      let now = try status(path)
      #expect(now.st_size == 10 * round && !isLater(before, than: now))
      before = now
    }
    #expect(try writer.errno("truncate", path, "8192") == 0 && status(path).st_size == 8192)
    #expect(try writer.errno("map", "0", "8192") == 0 && writer.errno("close", "0") == 0)
    // The descriptor is gone, the map is not. What it stores is a change like any other.
    before = try status(path)
    var changes = 0
    for round in 0..<5 {
      // The clock that files are stamped by ticks a few hundred times a second.
      usleep(20_000)
      #expect(try writer.errno("store", "\(4096 * (round % 2))", "\(65 + round)") == 0)
      #expect(try writer.errno("stat", path) == 0)
      let there = try status(mounted.backing("Users/Shared/file"))
      let here = try status(path)
      #expect(here.st_mtim.tv_sec == there.st_mtim.tv_sec && here.st_mtim.tv_nsec == there.st_mtim.tv_nsec)
      #expect(here.st_size == 8192)
      if isLater(here, than: before) { changes += 1 }
      before = here
    }
    if try mounted.flag("passthrough") {
      #expect(changes >= 1)
    }
    #expect(try writer.errno("unmap") == 0)
    let reader = OwnedFD(owning: try check(clx_open(path, O_RDONLY, 0)))
    let bytes = try reader.fd.readToEnd(limit: 10_000)
    #expect(bytes.count == 8192 && bytes[0] == 69 && bytes[4096] == 68)
  }

  @Test func openingAKnownFileCostsTwoRequests() throws {
    let mounted = try MountedStore.mounted()
    guard try mounted.flag("passthrough") else {
      print("not tested: there is no passthrough here")
      return
    }
    let path = mounted.path("Users/Shared/file")
    // In a process of its own: what is open in this one, a program that another test starts just now has open
    // too.
    let reader = try Client()
    let block = String(repeating: "x", count: 4096)
    #expect(try reader.errno("create", path, "\(0o644)") == 0 && reader.errno("write", "0", block) == 0)
    #expect(try reader.errno("close", "0") == 0)
    func openReadClose() throws {
      #expect(try reader.errno("open", path, "\(O_RDONLY)") == 0)
      #expect(try reader.run("read", "0", "0").words == [block])
      #expect(try reader.errno("close", "0") == 0)
    }
    try openReadClose()
    let before = try mounted.settledRequests()
    // Asking how many there were costs none.
    #expect(try mounted.settledRequests() == before)
    for _ in 0..<50 { try openReadClose() }
    // OPEN and RELEASE: no LOOKUP, no GETATTR, no READ, no FLUSH.
    let opens = try mounted.settledRequests() - before
    #expect(opens <= 100)
    for _ in 0..<50 { _ = try status(path) }
    // access(2) is always asked; looking a missing name up only once.
    for _ in 0..<50 { #expect(throws: Errno.ENOENT) { try status(path + "-missing") } }
    // What is known is not asked for again; the missing name was asked for once.
    let looks = try mounted.settledRequests() - before - opens
    #expect(looks <= 2)
  }

  @Test func writesCostNoRequests() throws {
    let mounted = try MountedStore.mounted()
    guard try mounted.flag("passthrough") else {
      print("not tested: there is no passthrough here")
      return
    }
    let path = mounted.path("Users/Shared/file")
    // In a process of its own: one that is started from here would close a copy of the file, which costs a
    // FLUSH.
    let writer = try Client()
    let block = String(repeating: "x", count: 4096)
    #expect(try writer.errno("create", path, "\(0o644)") == 0 && writer.errno("write", "0", block) == 0)
    let before = try mounted.settledRequests()
    for _ in 0..<500 { #expect(try writer.errno("write", "0", block) == 0) }
    let writes = try mounted.settledRequests() - before
    #expect(writes == 0)
    #expect(try status(path).st_size == 501 * 4096)
    // Each look at the file in between makes its attributes be asked for once, and a capability at most once
    // with them.
    let then = try mounted.settledRequests()
    for _ in 0..<50 {
      #expect(try writer.errno("write", "0", block) == 0)
      _ = try status(path)
    }
    let both = try mounted.settledRequests() - then
    #expect(both >= 50 && both <= 100)
  }
}

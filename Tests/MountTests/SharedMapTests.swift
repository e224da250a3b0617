// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing
internal import Volume

/// Two programs that count in shared maps of one file through two views: what one has synced, the other never
/// overwrites.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), .serialized)
struct SharedMapTests {
  /// Opens, maps and counts through each path in turn; prints for each `ok`, or the errno of mmap(2) or
  /// msync(2), and then what has arrived in the file.
  ///
  /// All have the page before one of them counts: what they have of the others is old when they write it.
  private static let counters = """
    import errno, mmap, os, struct, sys
    backing, paths = sys.argv[1], sys.argv[2:]
    files = [os.open(path, os.O_RDWR) for path in paths]
    maps, told = [], []
    for file in files:
      try:
        maps.append(mmap.mmap(file, 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE))
        maps[-1][0]
        told.append('ok')
      except OSError as error:
        maps.append(None)
        told.append(errno.errorcode[error.errno])
    for number, seen in enumerate(maps):
      for turn in range(1, 1001):
        if seen: seen[8 * number:8 * number + 8] = struct.pack('<Q', turn)
      try:
        if seen: seen.flush()
      except OSError as error: told[number] = errno.errorcode[error.errno]
    counts = struct.unpack('<%dQ' % len(paths), os.pread(os.open(backing, os.O_RDONLY), 8 * len(paths), 0))
    print(*told, *counts)
    """

  enum Way: CaseIterable, Sendable { case passthrough, throughDaemon, rootless }

  private func mounts(_ data: Way = .passthrough, scope: Scope = .wholeTree) throws -> SeveralMounts {
    let mounts = try SeveralMounts(
      3, rootless: data == .rootless, passthrough: data == .passthrough, scope: scope)
    #expect(mkdir(mounts.path(0, "dir"), 0o777) == 0)
    _ = try mounts.temporary.write(String(repeating: "\0", count: 4096), to: "tree/Users/Shared/dir/file")
    return mounts
  }

  private func count(_ mounts: SeveralMounts, _ views: [Int]) throws -> String {
    let paths = views.map { mounts.path($0, "dir/file") }
    let words = ["/usr/bin/python3", "-c", Self.counters, mounts.backing("dir/file")] + paths
    let result = try Program.run(words)
    return result.output + result.errors
  }

  @Test(arguments: Way.allCases, [[0, 1], [1, 0], [1, 2], [2, 1]])
  func countersOfTwoViewsAreBothKept(data: Way, views: [Int]) throws {
    let mounts = try mounts(data)
    let told = try count(mounts, views)
    #expect(told == (data == .passthrough ? "ok ok 1000 1000\n" : "ok ENODEV 1000 0\n"))
    // Nobody has it any more, so the next one may.
    if data != .passthrough { #expect(try count(mounts, [views[1]]) == "ok 1000\n") }
  }

  private static let granted = Scope([
    ScopePlace("Users/Shared/dir", [.read, .write, .revocable], isSubtree: true)
  ])

  /// Granted files are never passed through, so that each view of an app has pages of its own; with
  /// passthrough the kernel can't refuse the second map, so what is stored in it is not written.
  @Test(arguments: [
    (Way.passthrough, [1, 2], "ok EIO 1000 0\n"), (.passthrough, [1, 0], "ok ENODEV 1000 0\n"),
    (.passthrough, [0, 1], "ok EIO 1000 0\n"), (.passthrough, [0, 1, 2], "ok EIO EIO 1000 0 0\n"),
    (.throughDaemon, [1, 2], "ENODEV ENODEV 0 0\n"), (.throughDaemon, [0, 1], "ok ENODEV 1000 0\n"),
    (.rootless, [1, 2], "ENODEV ENODEV 0 0\n"), (.rootless, [0, 1], "ok ENODEV 1000 0\n"),
  ])
  func countersInAGrantedFolderAreKept(data: Way, views: [Int], expected: String) throws {
    let mounts = try mounts(data, scope: Self.granted)
    #expect(try count(mounts, views) == expected)
    // A view that is alone with it may, and may again.
    let isMapped = data == .passthrough
    for _ in 0..<2 { #expect(try count(mounts, [2]).hasPrefix(isMapped ? "ok 1000\n" : "ENODEV ")) }
  }

  /// A file that a view reads with passthrough it can't open without: then nobody has pages of their own.
  @Test func whoReadsWithPassthroughWritesSo() throws {
    let mounts = try mounts(scope: Self.granted)
    let reader = try Client()
    #expect(try reader.errno("open", mounts.path(0, "dir/file"), "\(O_RDONLY)") == 0)
    #expect(try count(mounts, [1, 0]) == "EIO ok 0 1000\n")
  }

  /// A map of the file's own pages may outlive its descriptor.
  @Test func mapThatOutlivesItsDescriptorCounts() throws {
    let mounts = try mounts(scope: Self.granted)
    let client = try Client()
    #expect(try client.errno("open", mounts.path(0, "dir/file"), "\(O_RDWR)") == 0)
    #expect(try client.errno("map", "0", "4096") == 0)
    #expect(try client.errno("close all") == 0)
    // The release comes a moment after close(2).
    #expect(eventually { mounts.views[0].counts.openFiles == 0 })
    #expect(try count(mounts, [1]) == "EIO 0\n")
    #expect(try client.errno("unmap") == 0)
    #expect(try eventually { try count(mounts, [1]) == "ok 1000\n" })
  }

  /// Nor does a file pass through that somebody may append to and nothing else; its owner maps it all the
  /// same.
  @Test(arguments: [([0, 1], "ok EIO 1000 0\n"), ([1, 0], "ok ENODEV 1000 0\n")])
  func countersInAFileForAppendersAreKept(views: [Int], expected: String) throws {
    let mounts = try mounts()
    let file = mounts.path(0, "dir/file")
    let bytes = AccessControlList([AccessControlEntry(.permit, .user(65534), .append)]).filesec
    #expect(lsetxattr(file, "system.insula.acl", bytes, bytes.count, 0) == 0)
    #expect(try count(mounts, views) == expected)
  }

  /// What is written by calls, and read, is the same everywhere, whoever has a map.
  @Test(arguments: Way.allCases)
  func callsSeeEachOther(data: Way) throws {
    let mounts = try mounts(data)
    let clients = try (0..<2).map { _ in try Client() }
    for (number, client) in clients.enumerated() {
      #expect(try client.errno("open", mounts.path(number, "dir/file"), "\(O_RDWR)") == 0)
    }
    for (number, client) in clients.enumerated() {
      #expect(try client.errno("write", "0", "text \(number)") == 0)
      for other in clients {
        let text = try other.run("read", "0", "0").words.first ?? ""
        #expect(text.hasPrefix("text \(number)"))
      }
    }
  }
}

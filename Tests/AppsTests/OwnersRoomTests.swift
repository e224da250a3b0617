// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Apps
internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Store
internal import TestSupport
internal import Testing

/// What a user installs for themselves gets no room that the disk keeps for root.
@Suite(.enabled(if: Program.isRoot, "a disk of its own, and becoming others, need root"))
struct OwnersRoomTests {
  private static let user: UInt32 = 54321
  private static let group: UInt32 = 54322

  private let disk: Ext4
  private let store: Store
  private let temporary: TemporaryDirectory
  private let source: String

  init() throws {
    disk = try Ext4(megabytes: 64, journal: false, reserved: 40)
    try Store.create(at: disk.path + "/store", TestStore.description)
    store = try Store(opening: disk.path + "/store", .exclusive)
    temporary = try TemporaryDirectory()
    source = try temporary.makeDirectory("Editor.app")
    // Others have half a megabyte left.
    let room = free().others - (512 << 10)
    let result = try Program.run(["fallocate", "-l", "\(room)", disk.path + "/filler"])
    guard result.status == 0 else { throw MountedStore.Failure(words: result.errors) }
  }

  /// The free bytes, and those of them that everyone may have.
  private func free() -> (all: Int, others: Int) {
    var info = statvfs()
    #expect(statvfs(disk.path, &info) == 0)
    return (Int(info.f_bfree) * Int(info.f_frsize), Int(info.f_bavail) * Int(info.f_frsize))
  }

  private func copy(_ reader: ReaderIdentity?) throws -> StagedTree {
    let directory = try TemporaryDirectory.open(source)
    let copy = TreeCopy(uid: Self.user, gid: Self.group, reader: reader)
    return try StagedTree(directory.fd, in: store, for: "Applications", copy)
  }

  /// What takes a megabyte or more, each another kind of room.
  private static let ways = [
    "head -c 2M /dev/zero | tr '\\0' x > large",
    "for n in $(seq 1000); do echo x > file$n; done",
    "mkdir -p d/d; for n in $(seq 1000); do mkdir d/d/$n; done",
    "for n in $(seq 1000); do ln -s $(printf '%0300d' $n) link$n; done",
    """
    python3 -c 'import os
    for n in range(1000):
      open("f%d" % n, "w").close(); os.setxattr("f%d" % n, "user.x", b"%03d" % n + b"x" * 700)'
    """,
  ]

  @Test(arguments: ways)
  func stopsAtIt(way: String) throws {
    let result = try Program.run(["bash", "-c", "set -e; \(way)"], in: source)
    #expect(result.status == 0, "\(result.errors)")
    let reserve = free().all - free().others
    #expect(reserve > 20 << 20)
    let reader = ReaderIdentity(uid: Self.user, gid: Self.group, groups: [])
    do {
      _ = try copy(reader)
      Issue.record("a user's copy found room")
    } catch let failure as TreeCopyFailure {
      guard case .failed(_, .ENOSPC) = failure.reason else { throw failure }
    }
    // What was there of it is gone, and root has its room for what is root's to do.
    sync()
    #expect(free().others > 256 << 10)
    let staged = try copy(nil)
    sync()
    #expect(free().others == 0 && free().all < reserve, "\(free()) of \(reserve)")
    staged.remove()
  }

  @Test func whatThereIsRoomForIsTheirs() throws {
    let script = "mkdir -p d/e; echo x > d/e/f; ln -s f d/e/l; setfattr -n user.x -v y d d/e/f"
    #expect(try Program.run(["bash", "-c", "set -e; \(script)"], in: source).status == 0)
    let staged = try copy(ReaderIdentity(uid: Self.user, gid: 54323, groups: []))
    let applications = try TemporaryDirectory.open(disk.path + "/store/tree/Applications")
    try staged.place(as: "Editor.app", in: applications.fd)
    for (name, mode) in [("", 0o755), ("/d", 0o755), ("/d/e", 0o755), ("/d/e/f", 0o644), ("/d/e/l", 0o777)]
      as [(String, FileMode)]
    {
      var status = stat()
      #expect(lstat(disk.path + "/store/tree/Applications/Editor.app" + name, &status) == 0)
      #expect(status.st_uid == Self.user && status.st_gid == Self.group, "\(name)")
      #expect(status.st_mode & 0o7777 == mode, "\(name)")
    }
  }
}

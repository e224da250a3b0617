// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What a disk keeps for root is for root, whichever way others write.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct ReservedRoomTests {
  /// A disk of which a fifth is root's, with a mounted store.
  private struct Fixture {
    let disk: Ext4
    let mounted: MountedStore

    init(_ options: String?) throws {
      disk = try Ext4(megabytes: 64, journal: false, reserved: 20)
      mounted = try MountedStore.mounted(options: options, store: disk.path + "/store")
    }

    /// The free blocks, and those of them that everyone may have.
    func free() -> (all: Int, others: Int) {
      var info = statvfs()
      #expect(statvfs(disk.path, &info) == 0)
      return (Int(info.f_bfree), Int(info.f_bavail))
    }

    func run(_ line: String, uid: UInt32) throws -> ProgramResult {
      let become = uid == 0 ? [] : ["setpriv", "--reuid=\(uid)", "--regid=\(uid)", "--clear-groups"]
      return try Program.run(
        become + ["timeout", "120", "bash", "-c", "cd '\(mounted.path("Users/Shared"))' && \(line)"])
    }
  }

  private static let user: UInt32 = 54321

  /// Ways to fill a disk; each ends when there is no more room.
  private static let ways = [
    "dd if=/dev/zero of=file bs=64k",
    "dd if=/dev/zero of=file bs=64k oflag=direct",
    "dd if=/dev/zero of=file bs=64k oflag=append conv=notrunc",
    "for n in {1..2000}; do dd if=/dev/zero of=file$n bs=64k count=1 || exit; done",
    "for n in {1..80}; do fallocate -o ${n}M -l 1M file || exit; done",
    "head -c 1M /dev/zero > from; for n in {1..80}; do cp --reflink=never from file$n || exit; done",
    "head -c 1M /dev/zero > from; for n in {1..80}; do cat from >> file || exit; done",
    """
    python3 -c 'import mmap, os
    f = os.open("file", os.O_RDWR | os.O_CREAT); os.ftruncate(f, 80 << 20); m = mmap.mmap(f, 80 << 20)
    for n in range(0, 80 << 20, 4096): m[n] = 1'
    """,
    "dd if=/dev/zero of=file bs=64k; for n in {1..1000}; do mkdir sub$n || exit; done",
  ]

  @Test(arguments: [nil, "nopassthrough"])
  func othersStopAtIt(options: String?) throws {
    let fixture = try Fixture(options)
    let reserve = fixture.free().all - fixture.free().others
    #expect(reserve > 2000)
    let room = fixture.free().others
    for way in Self.ways {
      let result = try fixture.run(way, uid: Self.user)
      sync()
      let left = fixture.free()
      #expect(left.others < 100, "\(way) has not filled the disk: \(left) \(result.errors.suffix(200))")
      #expect(
        left.all > reserve - 100, "\(way) took \(reserve - left.all) of \(reserve) blocks that are root's")
      #expect(try fixture.run("rm -rf ./*", uid: 0).status == 0)
      // The kernel releases a file when it likes, and ext4 gives its room back after that.
      #expect(
        eventually {
          sync()
          return fixture.free().others > room - 1000
        }, "\(way): \(fixture.free()), \(room) at the beginning")
    }
    #expect(try fixture.run(Self.ways[0], uid: 0).ending == .failed)
    // Some blocks are ext4's own.
    #expect(fixture.free().all < reserve * 2 / 3, "root is kept from what is root's")
  }

  /// One of the two has the file open when the other opens it: each has the room that is theirs.
  @Test(arguments: [nil, "nopassthrough"])
  func eachHasTheirOwnRoomInOneFile(options: String?) throws {
    let fixture = try Fixture(options)
    let reserve = fixture.free().all - fixture.free().others
    let file = fixture.mounted.path("Users/Shared/file")
    let fill = "dd if=/dev/zero of=file bs=64k conv=notrunc seek=1"
    for flags in [O_RDONLY, O_WRONLY, O_RDWR] {
      #expect(try fixture.run("echo user > file", uid: Self.user).status == 0)
      let fd = open(file, flags)
      try #require(fd >= 0)
      #expect(try fixture.run(fill, uid: Self.user).ending == .failed)
      sync()
      #expect(fixture.free().others < 100)
      #expect(
        fixture.free().all > reserve - 100, "a user took root's room in a file that root had open: \(flags)")
      if flags != O_RDONLY {
        // Both see one file.
        #expect(pwrite(fd, "root ", 5, 0) == 5)
        #expect(try fixture.run("head -c 5 file", uid: Self.user).output == "root ")
      }
      close(fd)
      #expect(try fixture.run("rm file", uid: 0).status == 0)
      sync()
    }
    let client = try Client(uid: Self.user)
    #expect(try client.errno("create", file, "\(0o666)") == 0)
    #expect(try client.errno("write", "0", "user") == 0)
    #expect(try fixture.run("head -c 4 file", uid: 0).output == "user")
    #expect(try fixture.run(fill, uid: 0).ending == .failed)
    sync()
    #expect(
      fixture.free().all < reserve * 2 / 3, "root is kept from what is root's in a file that a user has open")
    #expect(try client.errno("write at", "0", "0", "USER") == 0)
    #expect(try fixture.run("head -c 4 file", uid: 0).output == "USER")
  }

  /// An app writes as its user.
  @Test func appsStopAtIt() throws {
    let disk = try Ext4(megabytes: 128, journal: false, reserved: 20)
    let fixture = try RunFixture(store: disk.path + "/store")
    var info = statvfs()
    #expect(statvfs(disk.path, &info) == 0)
    let reserve = Int(info.f_bfree) - Int(info.f_bavail)
    for way in Self.ways[..<4] {
      let result = try fixture.inside("cd Documents; timeout 120 bash -c '\(way)'")
      sync()
      #expect(statvfs(disk.path, &info) == 0)
      #expect(info.f_bavail < 100, "\(way): \(result.errors.suffix(200))")
      #expect(Int(info.f_bfree) > reserve - 100, "\(way)")
      #expect(try fixture.inside("rm -f Documents/file*").status == 0)
    }
  }
}

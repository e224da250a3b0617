// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What strangers do takes nobody's working directory away, nor what is mounted in the tree.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct WorkingDirectoryTests {
  private static let owner: UInt32 = 54321
  private static let stranger: UInt32 = 54322

  /// A private directory and an open one, in each of which someone works and something is mounted.
  private final class Fixture {
    let mounted: MountedStore
    let base: String
    private let points: [String]

    init(options: String? = nil) throws {
      mounted = try MountedStore.mounted(options: options)
      base = mounted.path("Users/Shared/")
      points = [base + "private/mounted", base + "open/mounted", base + "private/way/mounted"]
      let owner = try Client(uid: WorkingDirectoryTests.owner)
      for (name, mode) in [("private", 0o700), ("open", 0o755)] {
        #expect(try owner.errno("mkdir", base + name, "\(mode)") == 0)
        for child in ["work", "mounted"] {
          #expect(try owner.errno("mkdir", base + name + "/" + child, "\(0o755)") == 0)
        }
      }
      #expect(try owner.errno("mkdir", base + "private/way", "\(0o755)") == 0)
      #expect(try owner.errno("mkdir", base + "private/way/mounted", "\(0o755)") == 0)
    }

    deinit { for point in points { umount2(point, 2) } }

    func mountInside() {
      for point in points { #expect(mount("insula-test", point, "tmpfs", 0, nil) == 0) }
    }
    func unmountInside() { for point in points { #expect(umount2(point, 0) == 0) } }
    func isMounted() throws -> [Bool] {
      let table = try MountTable.current()
      return points.map { table.top(at: $0)?.type == "tmpfs" }
    }
  }

  /// Runs loops at once, each by a client of its own; how many commands of each failed.
  private func failures(milliseconds: Int, _ loops: [(Client, [String])]) throws -> [Int] {
    for (client, commands) in loops { try client.send(["loop", "\(milliseconds)"] + commands) }
    return try loops.map { client, commands in
      let answer = try #require(try client.answer(milliseconds: Int32(milliseconds) + patience))
      let numbers = answer.words.compactMap { Int($0) }
      guard numbers.count == 2 else { throw Errno.EINVAL }
      #expect(numbers[0] > 10, "\(commands)")
      return numbers[1]
    }
  }

  @Test(arguments: [nil, "nopassthrough,nohandles"])
  func strangersTakeNobodysWorkingDirectoryAway(options: String?) throws {
    let fixture = try Fixture(options: options)
    let base = fixture.base
    fixture.mountInside()
    let strangers = try (0..<2).map { _ in try Client(uid: Self.stranger) }
    #expect(try strangers[0].errno("mkdir", base + "closing", "\(0o755)") == 0)
    #expect(try strangers[0].errno("create", base + "closing/file", "\(0o644)") == 0)
    #expect(try strangers[0].errno("close all") == 0)
    let (one, other) = (try Client(uid: Self.owner), try Client(uid: Self.owner))
    #expect(try one.errno("chdir", base + "private/work") == 0)
    #expect(try other.errno("chdir", base + "open/work") == 0)
    let names = ["work", "mounted", "way", "way/mounted", "missing"]
    let closing = base + "closing"
    let failed = try failures(
      milliseconds: 2000,
      [
        (one, ["getcwd", "mkdir made 448", "getcwd", "rmdir made"]),
        (other, ["getcwd", "mkdir made 448", "getcwd", "rmdir made"]),
        (strangers[0], names.map { "stat \(base)private/\($0)" }),
        (
          strangers[1],
          ["chmod \(closing) 448", "chmod \(closing) 493", "stat \(closing)/file", "stat \(closing)/missing"]
        ),
      ])
    #expect(failed[0] == 0 && failed[1] == 0)
    #expect(try fixture.isMounted() == [true, true, true])
  }

  /// What moves from an open directory into a closed one is out of others' reach, and nobody else notices.
  @Test(arguments: [nil, "nopassthrough,nohandles"])
  func movesIntoClosedDirectoriesDisturbNobody(options: String?) throws {
    let fixture = try Fixture(options: options)
    let base = fixture.base
    fixture.mountInside()
    let (one, other) = (try Client(uid: Self.owner), try Client(uid: Self.owner))
    #expect(try one.errno("chdir", base + "private/work") == 0)
    #expect(try other.errno("chdir", base + "open/work") == 0)
    let reader = try Client(uid: 54323)
    for uid in [Self.stranger, 54324] {
      let mover = try Client(uid: uid)
      let place = base + "\(uid)/"
      #expect(try mover.errno("mkdir", place, "\(0o755)") == 0)
      #expect(try mover.errno("mkdir", place + "closed", "\(0o700)") == 0)
      #expect(try mover.errno("mkdir", place + "open", "\(0o755)") == 0)
      for name in ["directory", "file"] {
        let (from, to) = (place + "open/" + name, place + "closed/" + name)
        if name == "file" {
          #expect(try mover.errno("create", from, "\(0o644)") == 0)
          #expect(try mover.errno("close all") == 0)
        } else {
          #expect(try mover.errno("mkdir", from, "\(0o755)") == 0)
          #expect(try mover.errno("create", from + "/inner", "\(0o644)") == 0)
          #expect(try mover.errno("close all") == 0)
        }
        for _ in 0..<3 {
          #expect(try mover.errno("stat", from) == 0)
          #expect(try mover.errno("rename", from, to) == 0)
          #expect(try mover.errno("stat", to) == 0)
          #expect(try reader.errno("stat", to) == EACCES)
          if name == "directory" { #expect(try reader.errno("stat", to + "/inner") == EACCES) }
          // Whoever walks to a mount whose name was withdrawn takes it away.
          for way in ["private/mounted", "open/mounted", "private/way/mounted"] {
            #expect(access(base + way, F_OK) == 0)
          }
          #expect(try fixture.isMounted() == [true, true, true])
          #expect(try one.errno("getcwd") == 0 && other.errno("getcwd") == 0)
          #expect(try mover.errno("rename", to, from) == 0)
        }
      }
    }
    #expect(try fixture.mounted.count("uncachedDirectories") == 0)
  }

  /// Where nobody's working directory is and nothing is mounted, a refusal is what it always was; elsewhere
  /// it is one for all names.
  @Test func refusalTellsNothingOfNames() throws {
    let fixture = try Fixture()
    let base = fixture.base
    let stranger = try Client(uid: Self.stranger)
    let names = ["work", "mounted", "missing", "way", "way/mounted"]
    func errors() throws -> Set<Int32> {
      try Set(names.map { try stranger.errno("stat", base + "private/" + $0) })
    }
    #expect(try errors() == [EACCES])
    fixture.mountInside()
    #expect(try errors() == [ENOMEM])
    fixture.unmountInside()
    #expect(try errors() == [EACCES])
    var owner: Client? = try Client(uid: Self.owner)
    #expect(try owner?.errno("chdir", base + "private/work") == 0)
    #expect(try errors() == [ENOMEM])
    #expect(try owner?.errno("chdir", base + "open/work") == 0)
    // The directory in which that one is has no stranger to refuse.
    #expect(try stranger.errno("stat", base + "open/missing") == ENOENT)
    owner = nil
    #expect(
      try eventually {
        usleep(200_000)
        // While a name is walked over, nobody can tell whether it is used besides.
        return try stranger.errno("stat", base + "private/missing") == EACCES
      })
    #expect(try errors() == [EACCES])
  }

  /// Whoever was there and has gone is no reason for another error, whatever the kernel knows below.
  @Test(arguments: [nil, "nopassthrough,nohandles"])
  func refusalIsTheUsualOneAgainWhenAllHaveLeft(options: String?) throws {
    let fixture = try Fixture(options: options)
    let base = fixture.base
    let stranger = try Client(uid: Self.stranger)
    let owner = try Client(uid: Self.owner)
    #expect(try owner.errno("chdir", base + "private/work") == 0)
    #expect(try owner.errno("create", base + "private/work/file", "\(0o644)") == 0)
    #expect(try owner.errno("stat", base + "private/work/file") == 0)
    for name in ["work", "missing", "work/file"] {
      #expect(try stranger.errno("stat", base + "private/" + name) == ENOMEM)
    }
    #expect(try owner.errno("getcwd") == 0)
    #expect(try owner.errno("chdir", "/") == 0)
    // The file is open still.
    for name in ["work", "missing", "work/file"] {
      #expect(try eventually { try stranger.errno("stat", base + "private/" + name) == EACCES })
    }
    #expect(try owner.errno("chdir", base + "private/work") == 0)
    #expect(try stranger.errno("stat", base + "private/work") == ENOMEM)
    #expect(try owner.errno("getcwd") == 0)
  }

  /// Someone who is there through another mount, in a mount namespace of their own.
  @Test func whoIsInAnotherNamespaceIsThere() throws {
    let fixture = try Fixture()
    let base = fixture.base
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    let script = "mount --bind \"$0\" /mnt && cd /mnt && echo ready && exec sleep 1000"
    process.arguments = ["unshare", "-m", "sh", "-c", script, base + "private/work"]
    process.standardOutput = output
    try Program.withSignalsUnblocked { try process.run() }
    defer {
      kill(process.processIdentifier, SIGKILL)
      process.waitUntilExit()
    }
    #expect(output.fileHandleForReading.availableData.count > 0)
    usleep(50_000)
    let stranger = try Client(uid: Self.stranger)
    #expect(try stranger.errno("stat", base + "private/work") == ENOMEM)
    #expect(try readlink("/proc/\(process.processIdentifier)/cwd") == "/mnt")
  }

  private func readlink(_ path: String) throws -> String {
    String(decoding: try FD.cwd.linkTarget(of: path), as: UTF8.self)
  }

  /// One who comes and goes, while a stranger is refused again and again, always finds where they are.
  @Test func whoComesAndGoesKeepsTheirWorkingDirectory() throws {
    let fixture = try Fixture()
    let base = fixture.base
    let (stranger, owner) = (try Client(uid: Self.stranger), try Client(uid: Self.owner))
    // Refusals are under way when the owner comes, as nearly always while someone is refused all the time.
    _ = try failures(milliseconds: 500, [(stranger, ["stat \(base)private/work"])])
    let failed = try failures(
      milliseconds: 4000,
      [
        (owner, ["chdir \(base)private/work", "getcwd", "chdir /"]),
        (stranger, ["stat \(base)private/work"]),
      ])
    #expect(failed[0] == 0)
  }

  /// What is mounted in a directory that moves with it is protected where it is then.
  @Test func whatIsMountedMovesWithItsDirectory() throws {
    let fixture = try Fixture()
    let base = fixture.base
    fixture.mountInside()
    let stranger = try Client(uid: Self.stranger)
    let owner = try Client(uid: Self.owner)
    #expect(try stranger.errno("stat", base + "private/way") == ENOMEM)
    #expect(try owner.errno("mkdir", base + "safe", "\(0o700)") == 0)
    #expect(try stranger.errno("stat", base + "safe/way") == EACCES)
    #expect(try owner.errno("rename", base + "private/way", base + "safe/way") == 0)
    #expect(try stranger.errno("stat", base + "safe/way") == ENOMEM)
    #expect(try MountTable.current().top(at: base + "safe/way/mounted")?.type == "tmpfs")
    #expect(umount2(base + "safe/way/mounted", 0) == 0)
    #expect(try stranger.errno("stat", base + "safe/way") == EACCES)
  }
}

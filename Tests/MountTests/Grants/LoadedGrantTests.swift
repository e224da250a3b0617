// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import TestSupport
internal import Testing
@testable internal import Volume

/// What a worker takes over of grants when it starts, for which everybody waits.
@Suite(.serialized, .enabled(if: Program.isRoot, "mounting takes root"))
struct LoadedGrantTests {
  private let fixture: GrantedMounts
  init() throws { fixture = try GrantedMounts() }

  private func milliseconds(_ body: () throws -> Void) rethrows -> Double {
    let start = monotonicNanoseconds()
    try body()
    return Double(monotonicNanoseconds() - start) / 1e6
  }

  private func record(
    _ id: Int64, _ name: String, identity: ObjectIdentity, isWritable: Bool = false
  ) -> GrantRecord {
    GrantRecord(
      id: id, identifier: fixture.app, user: 0, team: Team("T", root: nil), path: GrantedMounts.names(name),
      isWritable: isWritable, isDirectory: false, identity: identity, granted: 0)
  }

  private func identity(_ name: String) throws -> ObjectIdentity {
    let path = GrantedMounts.names(name)
    return try #require(fixture.volume.resolvedPath(along: path, for: 0).found?.identity)
  }

  /// Makes files beside the daemon, which is not what is tested.
  private func make(_ count: Int, in directory: String, _ prefix: String = "f") throws {
    let path = fixture.mounts.backing(directory)
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    for number in 0..<count {
      try #require(FileManager.default.createFile(atPath: "\(path)/\(prefix)\(number)", contents: nil))
    }
  }

  /// Makes so many files and moves them to where no path is long enough for them.
  private func unnamed(_ count: Int) throws -> [ObjectIdentity] {
    let deep = Array(repeating: String(repeating: "n", count: 250), count: 10).joined(separator: "/")
    try make(count, in: "lower/\(deep)")
    try make(0, in: "upper/\(deep)")
    let identities = try (0..<count).map { try identity("lower/\(deep)/f\($0)") }
    let (old, new) = (fixture.mounts.backing("lower"), fixture.mounts.backing("upper/\(deep)/lower"))
    try #require(rename(old, new) == 0)
    return identities
  }

  @Test func directoriesOnTheWayAreLookedUpOnce() throws {
    let (depth, count) = (100, 1000)
    let directory = (0..<depth).map { "d\($0)" }.joined(separator: "/")
    try make(count, in: directory)
    let records = try (0..<count).map { number in
      let name = "\(directory)/f\(number)"
      return record(Int64(number + 1), name, identity: try identity(name))
    }
    let walked = milliseconds {
      for record in records { _ = fixture.volume.resolvedPath(along: record.path, for: 0) }
    }
    var walk = PathWalk(fixture.volume)
    let together = milliseconds { for record in records { _ = walk.resolve(record.path, for: 0) } }
    print("\(count) grants, \(depth) directories deep: \(together) ms; one by one: \(walked) ms")
    #expect(together < walked / 2)
    fixture.volume.loadGrants(records.reversed())
    #expect(fixture.told.all.isEmpty && fixture.volume.granted == records)
    // All of their names are known: they follow a rename above them.
    try fixture.rename(fixture.all("d0"), fixture.all("moved"))
    let moved = "moved/" + directory.dropFirst(3)
    #expect(fixture.place(1) == moved + "/f0" && fixture.place(Int64(count)) == moved + "/f\(count - 1)")
  }

  /// Files that no path is long enough for are searched for once, however many there are.
  @Test func thereIsOneSearchForAll() throws {
    let count = 200
    let identities = try unnamed(count)
    try make(5000, in: "many")
    let records = identities.enumerated().map { index, identity in
      record(Int64(index + 1), "gone\(index)", identity: identity)
    }
    let one = milliseconds {
      fixture.volume.loadGrants(Array(records.prefix(1)))
      fixture.volume.revokeGrants([1])
    }
    let all = milliseconds { fixture.volume.loadGrants(records) }
    print("one search: \(one) ms; \(count) files that are searched for: \(all) ms")
    #expect(all < one * 10)
    #expect(fixture.volume.granted == records)
  }

  private func lost(_ path: String, of user: UInt32) throws -> LostGrant {
    let number = try ObjectNumber(FD.cwd.status(of: fixture.mounts.backing("../\(path)")))
    let known = GrantRecord(
      id: 1, identifier: fixture.app, user: user, team: Team("T", root: nil),
      path: GrantedMounts.names("gone"), isWritable: false, isDirectory: false,
      identity: ObjectIdentity(inode: 0, handle: [], created: 0), granted: 0)
    return LostGrant(record: known, number: number)
  }

  private func found(_ lost: [LostGrant]) -> [String?] {
    lost.map { grant in grant.path.map { String(decoding: GrantPath.path($0), as: UTF8.self) } }
  }

  @Test func oneUserIsNotSearchedForAtTheCostOfAnother() throws {
    try make(300, in: "../crowded", "a")
    try make(3, in: "../other/documents")
    for (name, owner) in [("crowded", 4711), ("other", 4712)] {
      try #require(chown(fixture.mounts.backing("../\(name)"), uid_t(owner), 0) == 0)
    }
    // Another's file is not looked for in the own home, whatever links that has.
    let known = [
      try lost("crowded/a0", of: 4711), try lost("other/documents/f1", of: 4712),
      try lost("other/documents/f1", of: 4711),
    ]
    var searched = known
    var allowance = SearchAllowance()
    allowance.names = 100
    fixture.volume.find(&searched, allowance)
    #expect(found(searched) == [nil, "Users/other/documents/f1", nil])
    searched = known
    fixture.volume.find(&searched)
    #expect(found(searched) == ["Users/crowded/a0", "Users/other/documents/f1", nil])
    // Nobody waits for it when its time is over.
    searched = known
    allowance = SearchAllowance()
    allowance.end = monotonicNanoseconds()
    fixture.volume.find(&searched, allowance)
    #expect(found(searched) == [nil, nil, nil])
  }

  /// A path that no registry takes is none that a grant can have.
  @Test(arguments: [(130, 1), (16, 250)]) func whatIsTooDeepStaysAtItsPath(depth: Int, length: Int) throws {
    let deep = Array(repeating: String(repeating: "d", count: length), count: depth).joined(separator: "/")
    try make(0, in: "folder")
    try make(0, in: deep)
    var known = record(1, "folder", identity: try identity("folder"))
    known = GrantRecord(
      id: 1, identifier: known.identifier, user: 0, team: known.team, path: known.path, isWritable: true,
      isDirectory: true, identity: known.identity, granted: 0)
    try #require(rename(fixture.mounts.backing("folder"), fixture.mounts.backing("\(deep)/folder")) == 0)
    fixture.volume.loadGrants([known])
    #expect(fixture.volume.granted == [known] && fixture.told.all.isEmpty)
  }

  /// A folder that may be read is not written because a file of its name could be.
  @Test(arguments: [false, true]) func whatMeetsIsOfTheKindThatIsThere(isFolderFirst: Bool) throws {
    try make(0, in: isFolderFirst ? "a" : "z")
    try fixture.write("x", to: fixture.all("m"))
    let name = isFolderFirst ? "a" : "z"
    let file = record(1, "m", identity: try identity("m"), isWritable: true)
    let folder = GrantRecord(
      id: 2, identifier: fixture.app, user: 0, team: file.team, path: GrantedMounts.names(name),
      isWritable: false, isDirectory: true, identity: try identity(name), granted: 0)
    try #require(unlink(fixture.mounts.backing("m")) == 0)
    try #require(rename(fixture.mounts.backing(name), fixture.mounts.backing("m")) == 0)
    fixture.volume.loadGrants([file, folder])
    let left = fixture.volume.granted
    #expect(left.map(\.id) == [2] && left.allSatisfy { !$0.isWritable && $0.isDirectory })
    #expect(fixture.place(2) == "m" && fixture.told.all == [1, 2])
  }

  /// One of them was moved past the daemon to where the other is gone.
  @Test func whatMeetsAtOnePathIsOneGrant() throws {
    for name in ["kept", "moved"] { try fixture.write(name, to: fixture.all(name)) }
    let records = [
      record(1, "kept", identity: try identity("kept")),
      record(2, "moved", identity: try identity("moved"), isWritable: true),
    ]
    try #require(rename(fixture.mounts.backing("moved"), fixture.mounts.backing("kept")) == 0)
    fixture.volume.loadGrants(records)
    let left = fixture.volume.granted
    #expect(left.map(\.id) == [1] && left.allSatisfy { $0.isWritable && $0.identity == records[1].identity })
    #expect(fixture.told.all == [1, 2])
  }

  /// Nobody has looked the file up since its filesystem was mounted, so the kernel knows its handle alone.
  @Test(arguments: [false, true]) func whatTheKernelHasNoNameOfIsSearchedFor(noatime: Bool) throws {
    let disk = try SmallDisk(ext4: 16, percentKeptForRoot: 0)
    func loaded(_ records: [GrantRecord]) throws -> (ObjectIdentity, [GrantRecord]) {
      let tree = try FD.cwd.openFollowing(disk.path, O_DIRECTORY | O_RDONLY)
      var settings = VolumeSettings()
      (settings.isSystem, settings.fileHandles) = (true, true)
      let other = noatime ? try PrivateMount(of: tree.fd, AccessTimeRule()) : nil
      let volume = Volume(tree: tree.fd, noatimeTree: other?.root, settings: settings)
      volume.loadGrants(records)
      let file = try tree.fd.openDirectory(at: ["Users", "Shared"].map { Array($0.utf8) })
      return (try ObjectIdentity(of: Array("moved".utf8), in: file.fd), volume.granted)
    }
    try FileManager.default.createDirectory(
      atPath: disk.path + "/Users/Shared", withIntermediateDirectories: true)
    try #require(FileManager.default.createFile(atPath: disk.path + "/Users/Shared/moved", contents: nil))
    let known = record(1, "before", identity: try loaded([]).0)
    let again = ["sh", "-c", "cd \"$0\" && umount disk && mount -o loop image disk", disk.directory.path]
    // A program that another test starts at this moment has open what this one had, until it runs.
    #expect(eventually { (try? Program.run(again))?.status == 0 })
    #expect(try loaded([known]).1.map(\.path) == [GrantedMounts.names("moved")])
  }

  /// The grant stayed with the name; a copy made of links is not what was granted.
  @Test func whatWasRemovedIsNotFoundByAnotherName() throws {
    try fixture.write("x", to: fixture.all("file"))
    let file = try fixture.grant("file")
    try #require(link(fixture.all("file"), fixture.all("copy")) == 0)
    try #require(unlink(fixture.all("file")) == 0)
    let records = fixture.volume.granted
    #expect(fixture.told.all == [file])
    fixture.volume.revokeGrants([file])
    fixture.volume.loadGrants(records)
    #expect(fixture.place(file) == "file" && !fixture.exists(fixture.own("copy")))
    try fixture.write("y", to: fixture.all("file"))
    #expect(fixture.volume.granted.first?.identity == (try identity("file")))
  }

  /// A handle of another filesystem's may lead to anything here.
  @Test func whatIsOnAVolumeStaysWithItsPath() throws {
    try fixture.write("another's", to: fixture.all("file"))
    var known = record(1, "file", identity: try identity("file"))
    try #require(symlink("/nowhere", fixture.mounts.backing("../elsewhere")) == 0)
    for place in ["Volumes/Away/file", "Network/Servers/host/share/file", "Users/elsewhere/file"] {
      known.path = GrantPath.names(Array(place.utf8))
      fixture.volume.loadGrants([known])
      #expect(fixture.volume.granted == [known])
      fixture.volume.revokeGrants([1])
    }
  }
}

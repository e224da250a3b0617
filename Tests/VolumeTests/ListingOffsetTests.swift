// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing
@testable internal import Volume

/// What open directories stand on: that a filesystem's offsets mean the same through another descriptor.
@Suite(.enabled(if: Program.isRoot, "making filesystems needs root"))
struct ListingOffsetTests {
  /// Filesystems to lie on, each with what keeps it there.
  private static func place(_ kind: String) throws -> (path: String, owner: any Sendable)? {
    switch kind {
    case "ext4":
      let disk = try Ext4()
      return (disk.path, disk)
    case "tmpfs":
      let disk = try SmallDisk(bytes: 16 << 20, files: 20_000)
      return (disk.path, disk)
    default:
      return try image(of: kind)
    }
  }

  private static func image(of kind: String) throws -> (path: String, owner: any Sendable)? {
    let temporary = try TemporaryDirectory()
    let point = try temporary.makeDirectory("disk")
    let image = try temporary.write("", to: "image")
    guard truncate(image, 512 << 20) == 0 else { throw Errno.last }
    for words in [["mkfs.\(kind)", "-q", image], ["mount", "-o", "loop", "-t", kind, image, point]] {
      let result = try? Program.run(words, environment: ["PATH": "/usr/sbin:/sbin:/usr/bin:/bin"])
      // This machine may have neither the program nor the filesystem.
      guard result?.status == 0 else { return nil }
    }
    return (point, temporary)
  }

  @Test(arguments: ["ext4", "tmpfs", "xfs", "btrfs"])
  func offsetsMeanTheSameThroughAnotherDescriptor(kind: String) throws {
    guard let (path, owner) = try Self.place(kind) else {
      #expect(kind == "xfs" || kind == "btrfs")
      return
    }
    defer { withExtendedLifetime(owner) {} }
    let top = try FD.cwd.openFollowing(path, O_RDONLY | O_DIRECTORY)
    let found = try top.fd.filesystemKind()
    #expect(found.name == kind && ListingDescriptors.areLasting(on: found))
    let directory = path + "/dir"
    #expect(mkdir(directory, 0o755) == 0)
    var random = SeededRandom(seed: 7)
    let steady = Set((0..<3000).map { "steady-\($0)" })
    var passing = Set((0..<1000).map { "passing-\($0)" })
    for name in steady.union(passing) { close(try check(creat(directory + "/" + name, 0o644))) }
    var seen: [String: Int] = [:]
    var offset: Int64 = 0
    for page in 0..<10_000 {
      let names = try Self.page(directory, after: &offset)
      if names.isEmpty { break }
      for name in names { seen[name, default: 0] += 1 }
      for _ in 0..<5 {
        guard let gone = passing.randomElement(using: &random) else { break }
        passing.remove(gone)
        #expect(unlink(directory + "/" + gone) == 0)
      }
      if page < 500 { close(try check(creat(directory + "/new-\(page)", 0o644))) }
    }
    #expect(steady.allSatisfy { seen[$0] == 1 } && seen.values.allSatisfy { $0 == 1 })
  }

  /// A few entries from an offset on, through a descriptor of its own.
  private static func page(_ path: String, after offset: inout Int64) throws -> [String] {
    let directory = try FD.cwd.openFollowing(path, O_RDONLY | O_DIRECTORY)
    _ = try directory.fd.seek(offset, SEEK_SET)
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 1024, alignment: 16)
    defer { room.deallocate() }
    let count = try directory.fd.readDirectory(into: room)
    var entries = DirectoryEntries(UnsafeRawBufferPointer(rebasing: room[..<count]))
    var names: [String] = []
    while let entry = entries.next() {
      offset = entry.next
      names.append(entry.name.text)
    }
    return names
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
@testable internal import Fuse
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Messages, byte by byte.
struct WireTests {
  private static func status() -> FileStatus {
    var status = FileStatus()
    status.st_ino = 0x1122_3344_5566_7788
    status.st_size = 0x11_2233_4455
    status.st_blocks = 88
    status.st_atim = timespec(tv_sec: -5, tv_nsec: 1)
    status.st_mtim = timespec(tv_sec: 1 << 34, tv_nsec: 2)
    status.st_ctim = timespec(tv_sec: 7, tv_nsec: 999_999_999)
    status.st_mode = S_IFDIR | 0o4751
    status.st_nlink = 3
    status.st_uid = 4_000_000_000
    status.st_gid = 12
    status.st_rdev = 13
    status.st_blksize = 4096
    return status
  }

  private static func expectStatus(_ reply: Reply, at base: Int) {
    #expect(reply.long(base) == 0x1122_3344_5566_7788)
    #expect(reply.long(base + 8) == 0x11_2233_4455)
    #expect(reply.long(base + 16) == 88)
    #expect(Int64(bitPattern: reply.long(base + 24)) == -5)
    #expect(reply.long(base + 32) == 1 << 34)
    #expect(reply.long(base + 40) == 7)
    #expect([48, 52, 56].map { reply.word(base + $0) } == [1, 2, 999_999_999])
    #expect(reply.word(base + 60) == 0o44751)
    #expect([64, 68, 72, 76, 80, 84].map { reply.word(base + $0) } == [3, 4_000_000_000, 12, 13, 4096, 0])
  }

  @Test func entryHasTheKernelsLayout() {
    var bytes = [UInt8](repeating: 0xff, count: 130)
    let entry = Entry(
      node: NodeID(0xabcd_0000_0001), attributes: Attributes(Self.status(), validity: 2.5),
      validity: 86_400.25)
    bytes.withUnsafeMutableBytes { if let base = $0.baseAddress { Wire.write(entry, to: base) } }
    let out = Reply(bytes: bytes)
    #expect(out.long(0) == 0xabcd_0000_0001 && out.long(8) == 0)
    #expect(out.long(16) == 86_400 && out.long(24) == 2)
    #expect(out.word(32) == 250_000_000 && out.word(36) == 500_000_000)
    Self.expectStatus(out, at: 40)
    #expect(Array(bytes[128...]) == [0xff, 0xff])
  }

  /// Only for names of that family anybody is asked, and never for half of one.
  @Test(
    arguments: [
      (22, "system.long\0", true), (22, "system.short\0", false), (22, "user.x\0", false),
      (22, "system.long", false), (22, "system.", false), (22, "", false), (23, "system.long\0", false),
    ] as [(UInt32, String, Bool)])
  func attributesMayBeLong(opcode: UInt32, name: String, isLong: Bool) {
    var bytes = words(0, opcode) + [UInt8](repeating: 0, count: 40) + Array(name.utf8)
    let pace = bytes.withUnsafeMutableBytes { Wire.Pace(UnsafeRawBufferPointer($0), of: FakeFiles()) }
    #expect(pace == (isLong ? .slow(.long) : .quick))
  }

  @Test func absentEntryHasNoNode() {
    var bytes = [UInt8](repeating: 0xff, count: 128)
    bytes.withUnsafeMutableBytes {
      if let base = $0.baseAddress { Wire.write(Entry.absent(validity: 9), to: base) }
    }
    let out = Reply(bytes: bytes)
    #expect(out.long(0) == 0 && out.long(16) == 9)
  }

  @Test func attributesAndOpenHaveTheKernelsLayout() {
    var bytes = [UInt8](repeating: 0xff, count: 106)
    let attributes = Attributes(Self.status(), validity: 1.5)
    bytes.withUnsafeMutableBytes { if let base = $0.baseAddress { Wire.write(attributes, to: base) } }
    let out = Reply(bytes: bytes)
    #expect(out.long(0) == 1 && out.word(8) == 500_000_000 && out.word(12) == 0)
    Self.expectStatus(out, at: 16)
    #expect(Array(bytes[104...]) == [0xff, 0xff])

    var open = [UInt8](repeating: 0xff, count: 18)
    let opened = Opened(handle: HandleID(0x1_0000_0002), mode: [.keepCache, .passthrough], backing: -3)
    open.withUnsafeMutableBytes { if let base = $0.baseAddress { Wire.write(opened, to: base) } }
    #expect(open == long(0x1_0000_0002) + words(0x82, UInt32(bitPattern: -3)) + [0xff, 0xff])
  }

  @Test(
    arguments: [
      (0, 0, 0), (-1, 0, 0), (.nan, 0, 0), (.infinity, 1_000_000_000, 999_999_999),
      (1e300, 1_000_000_000, 999_999_999),
      (0.25, 0, 250_000_000), (86_400, 86_400, 0), (1e-12, 0, 0),
    ] as [(Double, UInt64, UInt32)])
  func anyValidityCanBeSent(seconds: Double, whole: UInt64, nanoseconds: UInt32) {
    let split = Wire.split(seconds)
    #expect(split.seconds == whole && split.nanoseconds == nanoseconds)
  }

  @Test func shortMessagesHaveNoHeaderAndNoNumbers() {
    let whole = Message(.getattr, unique: 9, node: 5, uid: 1, gid: 2, pid: 3, words(8)).bytes
    for count in 0...whole.count {
      Array(whole[..<count]).withUnsafeBytes { bytes in
        let header = Wire.Header(bytes)
        #expect((header != nil) == (count >= 40))
        if let header {
          #expect(header.opcode == 3 && header.unique == 9 && header.node == NodeID(5))
          #expect(header.caller.uid == 1 && header.caller.gid == 2 && header.caller.pid == 3)
          #expect(header.length == 44)
        }
        #expect(Wire.word(at: 40, of: bytes) == (count >= 44 ? 8 : 0))
        #expect(Wire.longWord(at: 36, of: bytes) == (count >= 44 ? 8 << 32 : 0))
      }
    }
  }
}

/// Pages of listings.
struct DirectoryWriterTests {
  private func fill(_ room: Int, withAttributes: Bool, _ names: [String]) throws -> (DirectoryWriter, [UInt8])
  {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: room + 8, alignment: 16)
    defer { buffer.deallocate() }
    buffer.initializeMemory(as: UInt8.self, repeating: 0xee)
    var writer = DirectoryWriter(
      UnsafeMutableRawBufferPointer(rebasing: buffer[..<room]), withAttributes: withAttributes)
    for (index, text) in names.enumerated() {
      try text.withName { name in
        let fits = writer.hasRoom(for: name)
        let before = writer.count
        let entry = withAttributes && index % 2 == 0 ? FakeFiles.entry : nil
        writer.add(name, inode: UInt64(index + 100), type: 8, next: Int64(index + 1), entry: entry)
        #expect((writer.count > before) == fits)
      }
    }
    #expect(buffer[room...].allSatisfy { $0 == 0xee })
    return (writer, Array(writer.bytes))
  }

  @Test func entriesArePackedAndPadded() throws {
    let (_, bytes) = try fill(4096, withAttributes: false, ["a", "eightlen", "ninechars"])
    #expect(bytes.count == 32 + 32 + 40)
    let page = Reply(bytes: bytes)
    #expect(page.long(0) == 100 && page.long(8) == 1 && page.word(16) == 1 && page.word(20) == 8)
    #expect(Array(bytes[24..<32]) == [97, 0, 0, 0, 0, 0, 0, 0])
    #expect(page.long(32) == 101 && page.word(48) == 8 && Array(bytes[56..<64]) == Array("eightlen".utf8))
    #expect(page.long(64) == 102 && page.long(72) == 3 && page.word(80) == 9)
  }

  @Test func attributesGoBeforeEachEntry() throws {
    let (writer, bytes) = try fill(4096, withAttributes: true, ["a", "b", "c"])
    #expect(bytes.count == 3 * 160)
    let page = Reply(bytes: bytes)
    #expect(page.long(0) == FakeFiles.entry.node?.raw && page.long(128) == 100)
    // Without attributes the kernel is told of no node.
    #expect(page.long(160) == 0 && page.long(288) == 101 && bytes[312] == 98)
    #expect(writer.lookups.count == 2)
  }

  @Test(arguments: [0, 1, 24, 31, 32, 33, 63, 64, 159, 160, 161, 320, 400])
  func nothingIsWrittenPastTheEnd(room: Int) throws {
    let names = ["x", "y", String(repeating: "z", count: 255)]
    #expect(
      try fill(room, withAttributes: false, names).1.count == min(room / 32, 2) * 32 + (room >= 344 ? 280 : 0)
    )
    #expect(try fill(room, withAttributes: true, names).1.count == min(room / 160, 2) * 160)
  }
}

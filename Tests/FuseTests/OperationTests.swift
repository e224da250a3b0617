// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
@testable internal import Fuse
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A well-formed request of each kind, and what becomes of it.
struct Sample: Sendable, CustomTestStringConvertible {
  let opcode: Opcode
  let body: [UInt8]
  /// The call that it leads to.
  let call: String
  let node: UInt64
  let text: String
  let number: Int64
  /// How long the body of a good answer is.
  let size: Int

  var testDescription: String { "\(opcode) \(call)" }
  func message(_ unique: UInt64) -> Message { Message(opcode, unique: unique, node: 5, body) }

  init(
    _ opcode: Opcode, _ body: [UInt8], _ call: String, _ text: String = "", _ number: Int64 = 0,
    size: Int = 0,
    node: UInt64 = 5
  ) {
    self.opcode = opcode
    self.body = body
    self.call = call
    self.node = node
    self.text = text
    self.number = number
    self.size = size
  }

  /// struct fuse_lk_in of these ends.
  static func lock(_ kind: Int, _ first: UInt64, _ last: UInt64, flock: Bool = false) -> [UInt8] {
    long(9, 4, first, last) + words(UInt32(kind), 77, flock ? 1 : 0, 0)
  }

  static let entrySize = 128

  static let all: [Sample] = names + files + attributes

  private static let names: [Sample] = [
    Sample(.lookup, strings("name"), "lookup", "name", 1000, size: entrySize),
    Sample(.readlink, [], "readLink", size: 5),
    Sample(.symlink, strings("link", "target"), "makeSymlink", "link -> target", size: entrySize),
    Sample(
      .mknod, words(0o010644, 0, 0o22, 0) + strings("fifo"), "makeNode", "fifo", 0o010644, size: entrySize),
    Sample(.mkdir, words(0o755, 0o22) + strings("dir"), "makeDirectory", "dir", 0o755, size: entrySize),
    Sample(.unlink, strings("gone"), "remove", "gone", 0),
    Sample(.rmdir, strings("gone"), "remove", "gone", 1),
    Sample(.rename, long(8) + strings("a", "b"), "rename", "a -> b in 8", 0),
    Sample(.rename2, long(8) + words(2, 0) + strings("a", "b"), "rename", "a -> b in 8", 2),
    Sample(.link, long(6) + strings("hard"), "link", "hard", 5, size: entrySize, node: 6),
  ]

  private static let files: [Sample] = [
    Sample(.open, words(UInt32(O_RDWR), 0), "open", "", Int64(O_RDWR), size: 16),
    Sample(.open, words(UInt32(O_TRUNC), 1), "open", "kill", Int64(O_TRUNC), size: 16),
    Sample(
      .create, words(UInt32(O_RDWR), 0o100640, 0, 0) + strings("new"), "create", "new", 0o100640, size: 144),
    Sample(
      .tmpfile, words(UInt32(O_RDWR), 0o100600, 0, 0) + strings("#"), "createUnnamed", "2", 0o100600,
      size: 144),
    Sample(.read, long(9, 512) + words(100, 0) + long(0) + words(0, 0), "read", "100", 512, size: 16),
    Sample(
      .write, long(9, 3) + words(5, 0) + long(0) + words(0, 0) + Array("bytes".utf8), "write", "bytes", 3,
      size: 8),
    Sample(
      .write, long(9, 3) + words(2, 4) + long(0) + words(0, 0) + [65, 66], "write", "AB kill", 3, size: 8),
    Sample(.flush, long(9) + words(0, 0) + long(44), "flush", "", 44),
    Sample(.release, long(9) + words(0, 0) + long(0), "release", "", 9),
    Sample(.release, long(9) + words(0, 2) + long(44), "release", "owner 44", 9),
    Sample(.fsync, long(9) + words(1, 0), "synchronize", "", 1),
    Sample(.fallocate, long(9, 100, 200) + words(3, 0), "allocate", "100 200", 3),
    Sample(.lseek, long(9, 70) + words(4, 0), "seek", "4", 70, size: 8),
    Sample(.copyFileRange, long(9, 1, 6, 9, 2, 50, 0), "copyRange", "1 -> 6 2", 50, size: 8),
    Sample(.copyFileRange64, long(9, 1, 6, 9, 2, 1 << 33, 0), "copyRange", "1 -> 6 2", 1 << 33, size: 8),
    Sample(.opendir, words(0, 0), "openDirectory", size: 16),
    Sample(.readdir, long(3, 11) + words(4096, 0) + long(0) + words(0, 0), "readDirectory", "", 11, size: 64),
    Sample(
      .readdirplus, long(3, 11) + words(4096, 0) + long(0) + words(0, 0), "readDirectory", "", 11, size: 320),
    Sample(.releasedir, long(3) + words(0, 0) + long(0), "releaseDirectory", "", 3),
    Sample(.fsyncdir, long(3) + words(0, 0), "synchronizeDirectory"),
    Sample(.getlk, lock(1, 0, 99), "conflictingLock", "0 99", size: 24),
    Sample(.setlk, lock(1, 5, UInt64(Int64.max)), "setLock", "write 5 \(Int64.max)", 0),
    Sample(.setlkw, lock(0, 5, 6), "setLock", "read 5 6", 1),
    Sample(.setlk, lock(2, 5, 6, flock: true), "setFlock", "none", 0),
    Sample(.setlkw, lock(1, 0, UInt64(Int64.max), flock: true), "setFlock", "write", 1),
  ]

  private static let attributes: [Sample] = [
    Sample(.getattr, words(0, 0) + long(0), "attributes", size: 104),
    Sample(.statx, words(0, 0) + long(0) + words(0, 0xfff), "extendedStatus", size: 288),
    Sample(
      .setattr, setattr(valid: 1 | 8, size: 77, mode: 0o100600), "setAttributes", "mode 384, size 77",
      size: 104),
    Sample(
      .setattr, setattr(valid: 2 | 4 | 64, uid: 3, gid: 4), "setAttributes", "uid 3, gid 4, handle 9",
      size: 104),
    Sample(.setattr, setattr(valid: 8 | 1 << 11, size: 0), "setAttributes", "size 0, kill", size: 104),
    // With nothing to set, the kernel asks for the set-id bits to go.
    Sample(.setattr, setattr(valid: 0), "setAttributes", "kill", size: 104),
    Sample(.access, words(5, 0), "access", "", 5),
    Sample(.statfs, [], "statistics", size: 80),
    Sample(.getxattr, words(0, 0) + strings("user.a"), "attribute", "user.a", 0, size: 8),
    Sample(.getxattr, words(64, 0) + strings("user.a"), "attribute", "user.a", 64, size: 5),
    Sample(.listxattr, words(64, 0), "attributeNames", "", 64),
    Sample(.setxattr, words(3, 1) + strings("user.a") + [66, 67, 68], "setAttribute", "user.a=BCD", 1),
    Sample(.removexattr, strings("user.a"), "removeAttribute", "user.a"),
    Sample(.ioctl, long(9) + words(0, 0x8008_6601) + long(0) + words(0, 8), "inodeFlags", size: 24),
    Sample(
      .ioctl, long(9) + words(0, 0x4008_6602) + long(0) + words(8, 0) + words(0x20, 0), "setInodeFlags", "",
      0x20, size: 16),
  ]

  /// struct fuse_setattr_in.
  private static func setattr(
    valid: UInt32, size: UInt64 = 0, mode: UInt32 = 0, uid: UInt32 = 0, gid: UInt32 = 0
  ) -> [UInt8] {
    words(valid, 0) + long(9, size, 0, 0, 0, 0) + words(0, 0, 0, mode, 0, uid, gid, 0)
  }
}

/// Each operation arrives as it was sent, and is answered once.
struct OperationTests {
  private func started(_ files: FakeFiles) throws -> KernelEnd {
    let kernel = try KernelEnd(files)
    // Without the longer form of setxattr.
    _ = try kernel.ask(.initialize(flags: ~(1 << 29)))
    files.clear()
    return kernel
  }

  @Test(arguments: Sample.all)
  func requestBecomesOneCallAndOneReply(_ sample: Sample) throws {
    let files = FakeFiles()
    let kernel = try started(files)
    let reply = try kernel.ask(sample.message(1234))
    #expect(reply.unique == 1234 && reply.code == 0)
    #expect(reply.length == reply.bytes.count && reply.body.count == sample.size)
    #expect(
      files.calls
        == [FakeFiles.Call(name: sample.call, node: sample.node, text: sample.text, number: sample.number)])
  }

  @Test(arguments: Sample.all)
  func errorIsTheOneReply(_ sample: Sample) throws {
    let files = FakeFiles()
    let kernel = try started(files)
    for (unique, error) in [(UInt64(77), Errno.ENOSPC), (78, .ESTALE), (79, .ENOENT)] {
      files.fail(with: error)
      let reply = try kernel.ask(sample.message(unique))
      // What has no answer can't fail.
      let cannotFail = sample.opcode == .release || sample.opcode == .releasedir
      #expect(reply.unique == unique && reply.code == (cannotFail ? 0 : -error.code))
      #expect(reply.bytes.count == 16)
    }
    #expect(files.names == Array(repeating: sample.call, count: 3))
  }

  @Test(arguments: ["", ".", "..", "a/b", "/"])
  func namesThatNothingCanHaveAreRefused(name: String) throws {
    let files = FakeFiles()
    let kernel = try started(files)
    for message in [
      Message(.lookup, unique: 2, strings(name)), Message(.unlink, unique: 2, strings(name)),
      Message(.mkdir, unique: 2, words(0o755, 0) + strings(name)),
      Message(.rename, unique: 2, long(8) + strings("a", name)),
      Message(.symlink, unique: 2, strings(name, "target")),
      Message(.link, unique: 2, long(6) + strings(name)),
    ] {
      #expect(try kernel.ask(message).code == -EINVAL)
    }
    #expect(files.calls.isEmpty)
  }

  /// A name ends within its message.
  @Test func nameThatDoesNotEndIsRefused() throws {
    let files = FakeFiles()
    let kernel = try started(files)
    let open = Array("open".utf8)
    for message in [
      Message(.lookup, unique: 2, open), Message(.unlink, unique: 2, open), Message(.rmdir, unique: 2, open),
      Message(.lookup, unique: 2, []), Message(.mkdir, unique: 2, words(0o755, 0) + open),
      Message(.mkdir, unique: 2, words(0o755)), Message(.rename, unique: 2, long(8) + strings("a") + open),
      Message(.rename, unique: 2, long(8) + strings("a")), Message(.rename, unique: 2, long(8) + open),
      Message(.rename, unique: 2, []),
    ] {
      #expect(try kernel.ask(message).code == -EINVAL)
    }
    #expect(files.calls.isEmpty)
  }

  @Test func forgettingIsNotAnswered() throws {
    let files = FakeFiles()
    let kernel = try started(files)
    kernel.process(Message(.forget, unique: 2, node: 7, long(3)))
    kernel.process(Message(.batchForget, unique: 3, node: 0, words(2, 0) + long(8, 1, 9, 4)))
    // More are announced than have come.
    kernel.process(Message(.batchForget, unique: 4, node: 0, words(.max, 0) + long(8, 1) + long(9)))
    kernel.process(Message(.batchForget, unique: 5, node: 0, words(1)))
    #expect(try kernel.replies().isEmpty)
    #expect(files.calls.map(\.node) == [7, 8, 9, 8] && files.calls.map(\.number) == [3, 1, 4, 1])
  }

  @Test func unknownOperationsAreAnswered() throws {
    let kernel = try started(FakeFiles())
    for opcode in [Opcode.bmap, .poll, .setupMapping, .syncfs] {
      #expect(try kernel.ask(Message(opcode, unique: 5, [UInt8](repeating: 0, count: 64))).code == -ENOSYS)
    }
    let flags = long(9) + words(0, 0x1234) + long(0) + words(0, 0)
    #expect(try kernel.ask(Message(.ioctl, unique: 6, flags)).code == -ENOTTY)
    var odd = Message(.getattr, unique: 7)
    for opcode in [UInt32(0), 7, 19, 54, 1000, .max] {
      odd.bytes.replaceSubrange(4..<8, with: words(opcode))
      #expect(try kernel.ask(odd).code == -ENOSYS)
    }
  }

  @Test func lockAnswerHasTheConflict() throws {
    let kernel = try started(FakeFiles())
    let reply = try kernel.ask(Message(.getlk, unique: 2, Sample.lock(1, 0, 99)))
    #expect(reply.body == long(10, 19) + words(UInt32(F_WRLCK), 5))
  }

  @Test func badLocksAreRefused() throws {
    let files = FakeFiles()
    let kernel = try started(files)
    #expect(try kernel.ask(Message(.setlk, unique: 2, Sample.lock(9, 0, 9))).code == -EINVAL)
    #expect(try kernel.ask(Message(.setlk, unique: 3, Sample.lock(1, 1 << 63, 1 << 63))).code == -EINVAL)
    #expect(files.calls.isEmpty)
  }
}

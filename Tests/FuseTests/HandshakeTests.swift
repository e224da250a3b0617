// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
@testable internal import Fuse
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What is agreed with the kernel at the start.
struct HandshakeTests {
  private enum Flag {
    static let posixLocks: UInt32 = 1 << 1
    static let flock: UInt32 = 1 << 10
    static let parallelDirectories: UInt32 = 1 << 18
    static let cacheSymlinks: UInt32 = 1 << 23
    static let killPrivileges: UInt32 = 1 << 28
    static let extended: UInt32 = 1 << 30
    static let passthrough: UInt32 = 1 << 5
    static let noExport: UInt32 = 1 << 6
  }

  private func settings(passthrough: Bool = true, localLocks: Bool = false) -> ConnectionSettings {
    var settings = ConnectionSettings()
    settings.passthrough = passthrough
    settings.localLocks = localLocks
    return settings
  }

  @Test func replyIsCompletedWithWhatTheLibraryForgets() throws {
    let files = FakeFiles()
    let kernel = try KernelEnd(files, settings())
    let reply = try kernel.ask(.initialize())
    #expect(reply.code == 0 && reply.unique == 1 && reply.length == reply.bytes.count)
    #expect(reply.word(16) == 7)
    let flags = reply.word(28)
    for flag in [
      Flag.parallelDirectories, Flag.killPrivileges, Flag.extended, Flag.cacheSymlinks, Flag.posixLocks,
      Flag.flock,
    ] {
      #expect(flags & flag != 0)
    }
    #expect(reply.word(48) == Flag.passthrough | Flag.noExport)
    #expect(reply.word(52) == 1)
    // A user whose volume hangs doesn't have all that there may be under way.
    #expect(reply.word(32) == 49_151 << 16 | 65_535)
    #expect(files.calls == [FakeFiles.Call(name: "started", number: 1)])
    #expect(files.connection?.passthrough == true)
  }

  @Test func nothingIsClaimedThatTheKernelDoesNotOffer() throws {
    let files = FakeFiles()
    let kernel = try KernelEnd(files, settings())
    let reply = try kernel.ask(.initialize(flags: Flag.extended, flags2: Flag.noExport))
    #expect(reply.word(28) & (Flag.parallelDirectories | Flag.killPrivileges | Flag.posixLocks) == 0)
    #expect(reply.word(28) & Flag.extended != 0)
    #expect(reply.word(48) == Flag.noExport && reply.word(52) == 0)
    #expect(files.connection?.passthrough == false)
  }

  @Test func kernelWithoutSecondWordOfFlags() throws {
    let files = FakeFiles()
    let kernel = try KernelEnd(files, settings())
    // What lies where the second word would be means nothing then.
    let reply = try kernel.ask(.initialize(minor: 31, flags: ~Flag.extended, flags2: 0xffff_ffff))
    #expect(reply.word(28) & Flag.extended == 0 && reply.word(28) & Flag.parallelDirectories != 0)
    #expect(reply.word(48) == 0 && reply.word(52) == 0)
    #expect(files.connection?.passthrough == false)
  }

  @Test func settingsTurnThingsOff() throws {
    let files = FakeFiles()
    let kernel = try KernelEnd(files, settings(passthrough: false, localLocks: true))
    let reply = try kernel.ask(.initialize())
    #expect(reply.word(48) & Flag.passthrough == 0 && reply.word(52) == 0)
    #expect(reply.word(28) & (Flag.posixLocks | Flag.flock) == 0)
    #expect(files.connection?.passthrough == false)
  }

  @Test func refusalIsNotPatchedAndDoesNotCount() throws {
    let files = FakeFiles()
    let kernel = try KernelEnd(files, settings())
    var old = Message.initialize(unique: 3)
    old.bytes.replaceSubrange(40..<44, with: words(6))
    let refused = try kernel.ask(old)
    #expect(refused.code == -EPROTO && refused.length == 16 && refused.bytes.count == 16)
    #expect(files.calls.isEmpty && kernel.session.handshake.isPending)
    // Before the start nothing else is served.
    let early = try kernel.ask(Message(.getattr, unique: 4))
    #expect(early.code == -EIO && files.calls.isEmpty)
    #expect(try kernel.ask(.initialize(unique: 5)).word(48) & Flag.passthrough != 0)
    #expect(files.names == ["started"] && !kernel.session.handshake.isPending)
  }

  @Test func laterRepliesAreLeftAlone() throws {
    let files = FakeFiles()
    let kernel = try KernelEnd(files, settings())
    _ = try kernel.ask(.initialize(unique: 8))
    // The same unique number, and long enough to be taken for it.
    let reply = try kernel.ask(Message(.getattr, unique: 8, words(0, 0) + long(0)))
    #expect(reply.bytes.count == 120 && reply.long(32) == 4242)
    #expect(files.names == ["started", "attributes"])
  }
}

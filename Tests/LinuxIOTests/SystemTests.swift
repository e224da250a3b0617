// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Synchronization
internal import TestSupport
internal import Testing

@Suite struct SystemTests {
  @Test func accountsAreFoundBothWays() throws {
    let root = try #require(Account.named("root"))
    #expect(root.uid == 0)
    #expect(Account.numbered(0)?.name == "root")
    #expect(Account.named("nobody-of-this-name") == nil)
    #expect(Account.numbered(4_000_000_123) == nil)
    #expect(Account.named("") == nil)
  }

  @Test func groupsAreFoundBothWays() throws {
    #expect(AccountGroup.named("root")?.gid == 0)
    #expect(AccountGroup.numbered(0)?.name == "root")
    #expect(AccountGroup.named("no-group-of-this-name") == nil)
  }

  /// Only the kernel's word that there is none lets others remove what a process was making.
  @Test func processIsGoneOnlyWhereThatIsKnown() throws {
    #expect(!ProcessID.isGone(ProcessID.own))
    #expect(!ProcessID.isGone(1))
    // Not the numbers of processes, which means that nothing is known.
    #expect(!ProcessID.isGone(0) && !ProcessID.isGone(-1) && !ProcessID.isGone(.min))
    // Above what the kernel gives.
    #expect(ProcessID.isGone(.max))
  }

  @Test func socketWorksWhereNoAddressWouldReach() throws {
    let temporary = try TemporaryDirectory()
    let deep = Array(repeating: String(repeating: "x", count: 100), count: 3)
    for index in deep.indices { try temporary.makeDirectory(deep[...index].joined(separator: "/")) }
    let directory = try TemporaryDirectory.open(temporary.appending(deep.joined(separator: "/")))
    let listener = try LocalSocket.listen(in: directory.fd, name: "s", mode: 0o666)
    let client = try LocalSocket.connect(in: directory.fd, name: "s")
    let server = try LocalSocket.accept(listener.fd)
    #expect(try LocalSocket.peer(of: server.fd).pid == ProcessID.own)
    #expect(try LocalSocket.peer(of: server.fd).uid == ProcessID.user)
    #expect(try LocalSocket.send(Array("hello".utf8)[...], to: client.fd) == 5)
    #expect(try server.fd.waitUntilReadable(milliseconds: patience))
    #expect(try server.fd.readAvailable(limit: 10) == Array("hello".utf8))
  }

  @Test func sendingToOneWhoIsGoneIsAnErrorAndNoSignal() throws {
    let temporary = try TemporaryDirectory()
    let directory = try temporary.open()
    let listener = try LocalSocket.listen(in: directory.fd, name: "s", mode: 0o600)
    let client = try LocalSocket.connect(in: directory.fd, name: "s")
    do { _ = try LocalSocket.accept(listener.fd) }
    #expect(throws: Errno(EPIPE)) { try LocalSocket.send([1, 2, 3], to: client.fd) }
  }

  @Test func threadRunsAndIsJoined() throws {
    let done = Mutex(0)
    let thread = try JoinableThread(name: "a name longer than fifteen bytes") { done.withLock { $0 = 1 } }
    thread.join()
    #expect(done.withLock { $0 } == 1)
  }

  @Test func wakeupIsSeenOnceRung() throws {
    let wakeup = try Wakeup()
    #expect(try waitForAny(of: [wakeup.fd], milliseconds: 0) == [false])
    wakeup.ring()
    #expect(try waitForAny(of: [wakeup.fd], milliseconds: patience) == [true])
  }

  @Test func pipeEndsWhenItsWriterIsGone() throws {
    let ends = try pipe()
    try ends.write.fd.writeAll(Array("x".utf8))
    let read = ends.takeRead()
    #expect(try read.fd.readToEnd(limit: 100) == Array("x".utf8))
  }

  @Test func endOfAProcessIsSeen() throws {
    #expect(throws: Errno.ESRCH) { _ = try ProcessID.open(Int32.max) }
    let own = try ProcessID.open(ProcessID.own)
    #expect(try !own.fd.waitUntilReadable(milliseconds: 0))
  }

  @Test func filesystemsHaveNames() throws {
    let proc = try TemporaryDirectory.open("/proc")
    #expect(try proc.fd.filesystemKind() == FilesystemKind(magic: 0x9fa0))
    #expect(FilesystemKind(magic: 0xef53).name == "ext4")
    #expect(FilesystemKind(magic: 0x1234).name == "0x1234")
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
@testable internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Synchronization
internal import TestSupport
internal import Testing

/// What one user does to the control socket is nothing that others notice.
@Suite struct ControlNeighboursTests {
  private let temporary: TemporaryDirectory

  init() throws {
    temporary = try TemporaryDirectory()
    guard chmod(temporary.path, 0o755) == 0 else { throw Errno.last }
  }

  /// A server that does a job for whoever asks to unmount, and answers all else at once.
  private func server(
    limits: ControlConnections.Limits = .init(), _ job: @escaping @Sendable (ControlCall) -> ControlReply
  ) throws -> ControlServer {
    let directory = try temporary.open()
    let server = try ControlServer(in: directory.fd, name: "s", mode: 0o666, limits: limits) { call in
      guard case .unmount = call.request else { return .reply(.done) }
      return .job(.changes) { _ in job(call) }
    }
    try server.start()
    return server
  }

  private func client() throws(Errno) -> ControlClient {
    let directory = try temporary.open()
    return try ControlClient(in: directory.fd, name: "s")
  }

  /// The same as another user.
  private func stranger() throws -> ControlClient {
    let found = Mutex<ControlClient?>(nil)
    let directory = SharedFD(try temporary.open())
    let thread = try JoinableThread(name: "stranger") {
      guard clx_thread_setresuid(65534) == 0 else { return }
      let client = try? directory.use { (fd) throws(Errno) in try ControlClient(in: fd, name: "s") }
      found.withLock { $0 = client }
    }
    thread.join()
    return try #require(found.withLock { $0 })
  }

  @Test(.enabled(if: getuid() == 0)) func jobThatHangsHoldsOnlyItsOwnUser() throws {
    let gate = try Wakeup()
    let mayEnd = SharedFD(try gate.fd.duplicated())
    let hanging = try Wakeup()
    let hangs = SharedFD(try hanging.fd.duplicated())
    let server = try server { call in
      guard call.caller.uid == 65534 else { return .done }
      _ = try? hangs.use { (fd) throws(Errno) in try fd.writeAll([1, 0, 0, 0, 0, 0, 0, 0]) }
      _ = try? mayEnd.use { (fd) throws(Errno) in try fd.waitUntilReadable(milliseconds: patience) }
      return .done
    }
    defer { server.stop() }
    let stranger = try stranger()
    let asking = try JoinableThread(name: "asks") {
      _ = try? stranger.ask(.unmount(lazily: false), with: nil)
    }
    #expect(try hanging.fd.waitUntilReadable(milliseconds: patience))
    #expect(try client().ask(.unmount(lazily: false), milliseconds: patience) == .done)
    gate.ring()
    asking.join()
  }

  @Test func jobThatHangsForGoodDoesNotKeepTheDaemonFromEnding() throws {
    let gate = try Wakeup()
    defer { gate.ring() }
    let mayEnd = SharedFD(try gate.fd.duplicated())
    let begun = try Wakeup()
    let begins = SharedFD(try begun.fd.duplicated())
    let jobs = ControlJobs(grace: 1)
    let directory = try temporary.open()
    let listener = try LocalSocket.listen(in: directory.fd, name: "l", mode: 0o600)
    let caller = try LocalSocket.connect(in: directory.fd, name: "l")
    let connection = try ControlConnection(try LocalSocket.accept(listener.fd), PassedDescriptors())
    jobs.start(
      { _ in
        _ = try? begins.use { (fd) throws(Errno) in try fd.writeAll([1, 0, 0, 0, 0, 0, 0, 0]) }
        _ = try? mayEnd.use { (fd) throws(Errno) in try fd.waitUntilReadable(milliseconds: patience) }
        return .done
      }, in: .changes, for: connection)
    #expect(try begun.fd.waitUntilReadable(milliseconds: patience))
    let start = monotonicNanoseconds()
    jobs.stop()
    let seconds = Double(monotonicNanoseconds() - start) / 1e9
    #expect(seconds > 0.9 && seconds < Double(patience) / 2000)
    _ = consume caller
  }

  @Test func filesThatArePassedOnAreNoneOfOurs() throws {
    let path = try temporary.write("contents", to: "file")
    let server = try server { call in
      call.descriptor == nil ? .done : .failure(ControlFailure("a directory"))
    }
    defer { server.stop() }
    let file = try path.withName { (name) throws(Errno) in try FD.cwd.open(name, O_RDONLY) }
    let opened = try temporary.open()
    let socket = try LocalSocket.connect(in: opened.fd, name: "s")
    for passed in [file.fd, socket.fd] {
      #expect(try client().ask(.unmount(lazily: false), with: passed).isGood)
    }
    let directory = try temporary.open()
    #expect(try client().ask(.unmount(lazily: false), with: directory.fd).isGood == false)
  }

  @Test func whoeverKeepsFilesFromBeingClosedPassesOnNoMore() throws {
    let directory = try temporary.open()
    let listener = try LocalSocket.listen(in: directory.fd, name: "l", mode: 0o600)
    let sender = try LocalSocket.connect(in: directory.fd, name: "l")
    let receiver = try LocalSocket.accept(listener.fd)
    _ = try LocalSocket.send([1, 2], with: directory.fd, to: sender.fd)
    let refused = try #require(try LocalSocket.receive(from: receiver.fd, limit: 100, takesDescriptor: false))
    #expect(refused.bytes == [1, 2] && refused.descriptor == nil)
    _ = try LocalSocket.send([3], with: directory.fd, to: sender.fd)
    let taken = try #require(try LocalSocket.receive(from: receiver.fd, limit: 100))
    let descriptor = try #require(taken.descriptor)
    #expect(PassedDescriptors().keep(descriptor, of: 1) != nil)
  }

  @Test(.enabled(if: getuid() == 0)) func crowdOfOneUserDrivesNobodyElseOut() throws {
    var limits = ControlConnections.Limits()
    limits.ofOneUser = 8
    let server = try server(limits: limits) { _ in .done }
    defer { server.stop() }
    let ours = try client()
    #expect(try ours.ask(.status, milliseconds: patience) == .done)
    let crowd = try (0..<20).map { _ in try stranger() }
    // The last to come: when it has its answer, all have been let in.
    #expect(try crowd[19].ask(.status, milliseconds: patience) == .done)
    let dismissed = try crowd[0].ask(.status, milliseconds: patience)
    #expect(dismissed == .failure(.crowded))
    #expect(throws: Errno.self) { try crowd[0].ask(.status, milliseconds: patience) }
    #expect(try ours.ask(.status, milliseconds: patience) == .done)
  }

  @Test func usersWhoRunAllAppsTheyMayLeaveRoomForOthers() throws {
    let views = RunningViews(Budget(Budget.Limits(descriptors: 0)))
    var shares: [BudgetShare] = []
    for user in UInt32(1)...5 {
      let before = shares.count
      while let share = try? views.room(for: user) { shares.append(share) }
      #expect(shares.count > before + 50 && shares.count < 1000)
    }
    #expect(throws: Errno.EBUSY) { try views.room(for: 1) }
    #expect(throws: Never.self) { try views.room(for: 6) }
    #expect(throws: Never.self) { try views.room(for: 0) }
    // What has ended is free again.
    shares = []
    #expect(throws: Never.self) { try views.room(for: 1) }
  }

  @Test func nobodyTakesAllJobs() throws {
    let gate = try Wakeup()
    let mayEnd = SharedFD(try gate.fd.duplicated())
    let server = try server { _ in
      _ = try? mayEnd.use { (fd) throws(Errno) in try fd.waitUntilReadable(milliseconds: patience) }
      return .done
    }
    defer {
      gate.ring()
      server.stop()
    }
    let directory = try temporary.open()
    var waiting: [SharedFD] = []
    var refused = 0
    for _ in 0..<12 {
      let socket = SharedFD(try LocalSocket.connect(in: directory.fd, name: "s"))
      waiting.append(socket)
      try socket.use { (fd) throws(Errno) in
        try fd.writeAll(Array("{\"verb\":\"unmount\"}\n".utf8))
        // Once this is answered the server has come to the other as well.
        _ = try client().ask(.status, milliseconds: patience)
        if try fd.waitUntilReadable(milliseconds: 200) { refused += 1 }
      }
    }
    #expect(refused == 4)
  }
}

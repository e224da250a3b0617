// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import CLinux
@testable internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Synchronization
internal import TestSupport
internal import Testing

/// Requests that take their time, and what is passed on with them.
@Suite struct ControlJobTests {
  private let temporary: TemporaryDirectory

  init() throws { temporary = try TemporaryDirectory() }

  /// A server that does a job for whoever asks to unmount, and answers all else at once.
  private func server(_ job: @escaping @Sendable (ControlCall, ControlReporter) -> ControlReply) throws
    -> ControlServer
  {
    let directory = try temporary.open()
    let server = try ControlServer(in: directory.fd, name: "s", mode: 0o600) { call in
      guard case .unmount = call.request else { return .reply(.done) }
      return .job(.changes) { job(call, $0) }
    }
    try server.start()
    return server
  }

  private func client() throws -> ControlClient {
    let directory = try temporary.open()
    return try ControlClient(in: directory.fd, name: "s")
  }

  @Test func jobSaysHowFarItIsAndOthersAreAnsweredMeanwhile() throws {
    let mayEnd = try Wakeup()
    let gate = SharedFD(try mayEnd.fd.duplicated())
    let server = try server { _, reporter in
      reporter.report(InstallProgress(phase: .copying, done: 1, total: 2))
      _ = try? gate.use { (fd) throws(Errno) in try fd.waitUntilReadable(milliseconds: patience) }
      return .path("after all")
    }
    defer { server.stop() }
    let client = try client()
    var heard: [InstallProgress] = []
    let reply = try client.ask(.unmount(lazily: false), with: nil) { step in
      heard.append(step)
      // Only when another one was answered does it go on.
      if (try? self.client().ask(.status, milliseconds: patience)) == .done { mayEnd.ring() }
    }
    #expect(heard == [InstallProgress(phase: .copying, done: 1, total: 2)])
    #expect(reply == .path("after all"))
  }

  /// However long the answer is, and however slowly it is read.
  @Test func longAnswersArriveWhole() throws {
    let long = String(repeating: "0123456789", count: 90_000)
    let server = try server { _, reporter in
      for done in Int64(0)..<100 { reporter.report(InstallProgress(phase: .copying, done: done, total: 100)) }
      return .path(long)
    }
    defer { server.stop() }
    #expect(try client().ask(.unmount(lazily: false), milliseconds: patience) == .path(long))
    var last = 0
    let slow = try client().ask(.unmount(lazily: false), with: nil) { step in
      usleep(20_000)
      last = Int(step.done)
    }
    #expect(slow == .path(long) && last > 0)
  }

  @Test func oneJobAtATime() throws {
    let counts = Counts()
    let server = try server { _, _ in
      counts.enter()
      usleep(20_000)
      counts.leave()
      return .done
    }
    defer { server.stop() }
    let threads = try (0..<5).map { _ in
      let client = try client()
      return try JoinableThread(name: "asks") {
        if (try? client.ask(.unmount(lazily: false), with: nil)) == .done { counts.noteAnswer() }
      }
    }
    for thread in threads { thread.join() }
    #expect(counts.most == 1 && counts.answers == 5)
  }

  @Test func descriptorIsPassedOnAndNoMoreThanOne() throws {
    try temporary.write("contents", to: "file")
    let server = try server { call, _ in
      guard let passed = call.descriptor else { return .failure(ControlFailure("nothing came")) }
      let text = try? passed.use { (fd) throws(Errno) in try fd.contents(of: "file", limit: 100) }
      return .path(text.map { String(decoding: $0, as: UTF8.self) } ?? "")
    }
    defer { server.stop() }
    let opened = try temporary.open()
    let reply = try client().ask(.unmount(lazily: false), with: opened.fd)
    #expect(reply == .path("contents"), "\(reply)")
    #expect(try client().ask(.unmount(lazily: false), with: nil).isGood == false)
    let before = descriptorCount()
    for _ in 0..<20 { _ = try client().ask(.status, with: opened.fd) }
    // What nobody wanted is closed with the connection; give the server a moment to see that it ended.
    #expect(eventually { descriptorCount() <= before + 4 })
  }

  @Test func callerIsKnownWithAllGroups() throws {
    let server = try server { call, _ in
      .path("\(call.caller.uid) \(call.caller.gid) \(call.callerIdentity().groups.sorted())")
    }
    defer { server.stop() }
    let expected = "\(ProcessID.user) \(getegid()) \(ownGroups().sorted())"
    #expect(try client().ask(.unmount(lazily: false), with: nil) == .path(expected))
  }

  @Test func jobLearnsThatNobodyWaitsForIt() throws {
    let seen = try Wakeup()
    let bell = SharedFD(try seen.fd.duplicated())
    let server = try server { _, reporter in
      reporter.report(InstallProgress(phase: .looking, done: 0, total: 1))
      if eventually({ reporter.isCancelled }) {
        _ = try? bell.use { (fd) throws(Errno) in try fd.writeAll([1, 0, 0, 0, 0, 0, 0, 0]) }
      }
      return .done
    }
    defer { server.stop() }
    do {
      let directory = try temporary.open()
      let socket = try LocalSocket.connect(in: directory.fd, name: "s")
      try socket.fd.writeAll(Array("{\"verb\":\"unmount\"}\n".utf8))
      // It has begun.
      #expect(try socket.fd.waitUntilReadable(milliseconds: patience))
    }
    #expect(try seen.fd.waitUntilReadable(milliseconds: patience))
  }

  @Test func serverThatEndsCancelsAndAnswers() throws {
    let server = try server { _, reporter in
      reporter.report(InstallProgress(phase: .looking, done: 0, total: 1))
      while !reporter.isCancelled { usleep(5000) }
      return .failure(ControlFailure("cancelled"))
    }
    var stopping: JoinableThread?
    let reply = try client().ask(.unmount(lazily: false), with: nil) { _ in
      stopping = try? JoinableThread(name: "stops") { server.stop() }
    }
    stopping?.join()
    #expect(reply == .failure(ControlFailure("cancelled")))
  }

  private func descriptorCount() -> Int {
    let entries = try? "/proc/self/fd".withName { (name) throws(Errno) in
      let directory = try FD.cwd.openFollowing(name, O_RDONLY | O_DIRECTORY)
      return try directory.fd.entries()
    }
    return entries?.count ?? 0
  }

  private func ownGroups() -> [UInt32] {
    var groups = [gid_t](repeating: 0, count: 65536)
    let count = getgroups(Int32(groups.count), &groups)
    return Array(groups.prefix(Int(max(count, 0))))
  }

  /// How many jobs were in work at once.
  private final class Counts: Sendable {
    private let state = Mutex((now: 0, most: 0, answers: 0))
    var most: Int { state.withLock { $0.most } }
    var answers: Int { state.withLock { $0.answers } }
    func enter() {
      state.withLock {
        $0.now += 1
        $0.most = max($0.most, $0.now)
      }
    }
    func leave() { state.withLock { $0.now -= 1 } }
    func noteAnswer() { state.withLock { $0.answers += 1 } }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
@testable internal import Daemon
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import TestSupport
internal import Testing
internal import Volume

/// The log of a daemon, and the journal to which it goes too.
@Suite struct EventLogTests {
  /// Takes datagrams in the journal's place.
  private final class Decoy {
    let temporary: TemporaryDirectory
    let socket: OwnedFD
    var path: String { temporary.appending("socket") }

    init() throws {
      temporary = try TemporaryDirectory()
      socket = OwnedFD(owning: try check(Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)))
      var address = sockaddr_un()
      address.sun_family = sa_family_t(AF_UNIX)
      let bytes = Array(temporary.appending("socket").utf8)
      withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
      let raw = socket.fd.raw
      let length = socklen_t(MemoryLayout<sockaddr_un>.size)
      let bound = withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(raw, $0, length) }
      }
      try check(bound)
    }

    /// The fields of the next one, read as the journal reads them.
    func fields() throws -> [(String, String)] {
      guard try socket.fd.waitUntilReadable(milliseconds: patience) else { throw Errno.EAGAIN }
      var rest = (try socket.fd.readAvailable(limit: 1 << 16) ?? [])[...]
      var fields: [(String, String)] = []
      while let end = rest.firstIndex(of: 10) {
        let name = String(decoding: rest[..<end], as: UTF8.self)
        rest = rest[(end + 1)...]
        let count = rest.prefix(8).enumerated().reduce(0) { $0 | Int($1.element) << (8 * $1.offset) }
        rest = rest.dropFirst(8)
        fields.append((name, String(decoding: rest.prefix(count), as: UTF8.self)))
        rest = rest.dropFirst(count)
        guard rest.first == 10 else { throw Errno.EIO }
        rest = rest.dropFirst()
      }
      guard rest.isEmpty else { throw Errno.EIO }
      return fields
    }
  }

  private func refusal(_ key: Int, user: UInt32 = 1001) -> Refusal {
    Refusal(
      app: AppIdentifier("org.example.a"), user: user, thread: getpid(), operation: .write, rule: .view,
      key: key)
  }

  @Test func whatIsDoneIsThereWhenItIsTold() throws {
    let made = try TestStore()
    let log = try EventLog(made.open(), journal: nil)
    for number in 0..<100 {
      log.record(LogEntry(now: .launched, user: 1, app: "a.b", pid: Int32(number)))
      // By another process's eyes.
      let entries = StoreLog(try made.open(.inspect)).page(LogQuery()).entries
      #expect(entries.last?.pid == Int32(number) && entries.count == number + 1)
    }
    log.finish()
    // Nobody waits for a log that has ended.
    log.record(LogEntry(now: .unmounted))
  }

  @Test func refusalsAreWrittenAndCounted() throws {
    let made = try TestStore()
    let log = try EventLog(made.open(), journal: nil)
    var paths = 0
    for _ in 0..<1000 {
      log.refused(refusal(1)) {
        paths += 1
        return Array("Users/a".utf8)
      }
    }
    // Only what gets a line is looked up.
    #expect(paths == 1)
    #expect(eventually { log.page(LogQuery()).entries.count == 1 })
    log.finish()
    let entries = log.page(LogQuery()).entries
    #expect(entries.map(\.more) == [nil, 999])
    #expect(entries.allSatisfy { $0.path == "Users/a" && $0.operation == "write" && $0.rule == "view" })
    #expect(entries.first?.pid == getpid() && entries.first?.program?.isEmpty == false)
  }

  @Test func journalGetsFieldsThatNobodyForges() throws {
    let decoy = try Decoy()
    let made = try TestStore()
    let log = try EventLog(made.open(), journal: Journal(["INSULA_JOURNAL": decoy.path]))
    log.refused(refusal(1)) { Array("x\nINSULA_USER=0\nPRIORITY=0\n\u{1b}[2J".utf8) + [0xff] }
    let fields = try decoy.fields()
    #expect(
      fields.map(\.0) == [
        "MESSAGE", "PRIORITY", "SYSLOG_IDENTIFIER", "INSULA_EVENT", "INSULA_USER", "INSULA_APP", "INSULA_PID",
        "INSULA_PROGRAM", "INSULA_OPERATION", "INSULA_RULE", "INSULA_PATH",
      ])
    let values = Dictionary(fields) { first, _ in first }
    #expect(values["INSULA_PATH"] == "x?INSULA_USER=0?PRIORITY=0??[2J?" && values["INSULA_USER"] == "1001")
    #expect(values["MESSAGE"]?.contains("\n") == false)
    log.finish()
  }

  @Test func journalIsWhereItIsSaid() {
    #expect(Journal(["INSULA_JOURNAL": ""]) == nil)
    #expect(Journal([:]) != nil)
    // Nobody listens there, or it is no address at all.
    Journal(["INSULA_JOURNAL": "/nonexistent"])?.send([LogEntry(now: .mounted)])
    Journal(["INSULA_JOURNAL": String(repeating: "x", count: 1000)])?.send([LogEntry(now: .mounted)])
  }

  /// A disk that takes nothing any more keeps nobody waiting, and what comes later is written again.
  @Test func logThatCannotBeWrittenIsNoHindrance() throws {
    let made = try TestStore()
    let place = made.path + "/state/log"
    #expect(creat(place, 0o600) >= 0)
    let log = try EventLog(made.open(), journal: nil)
    log.record(LogEntry(now: .launched, user: 1, app: "a.b"))
    log.refused(refusal(1)) { nil }
    #expect(unlink(place) == 0)
    log.record(LogEntry(now: .ended, user: 1, app: "a.b"))
    #expect(log.page(LogQuery()).entries.contains { $0.event == .ended })
    log.finish()
  }
}

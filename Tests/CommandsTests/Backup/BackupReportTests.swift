// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import JSON
internal import Synchronization
internal import TestSupport
internal import Testing

/// What is told of a backup while it is made.
@Suite struct BackupReportTests {
  private final class Heard: Sendable {
    let bytes = Mutex<[UInt8]>([])
    let time = Mutex<UInt64>(0)

    var text: String { bytes.withLock { String(decoding: $0, as: UTF8.self) } }

    func report() -> BackupReport {
      let console = Console(
        output: { _ in }, errors: { new in self.bytes.withLock { $0 += new } }, isTerminal: false)
      return BackupReport(console, dispensable: [], now: { self.time.withLock { $0 } })
    }
  }

  private static let hour: UInt64 = 3_600_000_000_000

  @Test func itSaysWhenResticStands() {
    let heard = Heard()
    let report = heard.report()
    func take(at time: UInt64, bytes: Int) {
      heard.time.withLock { $0 = time }
      let line = #"{"message_type":"status","bytes_done":\#(bytes),"current_files":["/a/b"]}"#
      report.take(Array(line.utf8))
    }
    take(at: 1, bytes: 5)
    take(at: Self.hour, bytes: 6)
    take(at: 2 * Self.hour - 1, bytes: 6)
    #expect(!heard.text.contains("has not got on"))
    take(at: 2 * Self.hour, bytes: 6)
    #expect(heard.text.contains("restic has not got on for an hour; it stands at /a/b"), "\(heard.text)")
    heard.bytes.withLock { $0 = [] }
    take(at: 3 * Self.hour - 1, bytes: 6)
    #expect(!heard.text.contains("has not got on"))
    take(at: 3 * Self.hour, bytes: 6)
    #expect(heard.text.contains("has not got on"))
  }

  @Test func lostAttributesAreNamed() throws {
    let heard = Heard()
    let report = heard.report()
    let lines = [
      "can not obtain extended attribute user.a for /a/b:", "something else",
      #"{"message_type":"error","error":{"Op":"readdirent","Path":"/a/c","Err":75},"item":"/a/c"}"#,
    ]
    for line in lines { report.take(Array(line.utf8)) }
    #expect(
      report.unread == [
        "can not obtain extended attribute user.a for /a/b:",
        "/a/c: it has more names, with what is above it, than this machine has memory for in a backup",
      ])
  }

  /// The names of a file are one object, others are not.
  @Test func filesAreCountedOnce() throws {
    func object(_ name: String, _ size: Int, _ time: String) throws -> Int {
      try JSONText.decode(
        ResticNode.self,
        from: Array(
          """
          {"name":"\(name)","type":"file","path":"/\(name)","uid":0,"gid":0,"size":\(size),"mode":420,
          "mtime":"2026-11-30T20:14:02.980686118Z","ctime":"2026-11-30T20:14:\(time)Z"}
          """.utf8)
      ).object
    }
    let file = try object("f", 3, "02.9")
    #expect(try file == object("g", 3, "02.9"))
    #expect(try file != object("f", 4, "02.9") && file != object("f", 3, "02.8"))
  }
}

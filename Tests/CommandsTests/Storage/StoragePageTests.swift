// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
@testable internal import Commands
internal import Foundation
internal import JSON
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
internal import TestSupport
internal import Testing

// What a hostile app, or whoever names files, may try with what is shown:
//
// - script, attributes and elements in a name; controls, escape sequences and marks of direction:
//   `namesAreOnlyText`, `nothingAppearsThatATerminalObeys`
// - numbers that are too large or make no sense: `senselessNumbersAreShown`

/// How a report is shown.
@Suite struct StoragePageTests {
  static let hostile = "</code><script>alert(1)</script><img src=x onerror='x'>\u{1b}[31m\u{202e}\"&\n\u{0}"

  /// As a daemon might send it.
  private static func report(_ items: String, total: Int64 = 1 << 40) throws -> StorageReport {
    let sizes = #"{"bundle":1,"documents":2,"data":3,"caches":4,"tmp":5,"groups":6,"icloud":7}"#
    let text = """
      {"items":[\(items)],"others":3,"othersBytes":5000000,"used":\(sizes),"purgeable":9,
       "available":{"total":\(total),"free":\(total / 3),"importantUsage":\(total / 2),
                    "opportunisticUsage":\(total / 4)}}
      """
    return try JSONText.decode(StorageReport.self, from: Array(text.utf8))
  }

  private static func item(
    app: String = "org.example.notes", name: String = "Notes", bytes: Int64 = 123_456_789,
    example: String = "Data/film.mp4", user: String = "1000"
  ) throws -> String {
    func quoted(_ text: String) throws -> String {
      String(decoding: try JSONText.encode([text]), as: UTF8.self).dropFirst().dropLast().description
    }
    let advice = try StorageAdvice.Kind.allCases.map { kind in
      #"{"kind":"\#(kind.rawValue)","count":2,"bytes":5000000,"examples":[\#(try quoted(example))]}"#
    }
    return """
      {"app":\(try quoted(app)),"name":\(try quoted(name)),"user":\(user),"isInstalled":false,
       "isRunning":false,"lastRun":1795514400,"purgeable":4000000,"measured":5,"isComplete":false,
       "sizes":{"bundle":\(bytes),"documents":2000000,"data":0,"caches":4000000,"tmp":0,"groups":0,
                "icloud":0},
       "advice":[\(advice.joined(separator: ","))]}
      """
  }

  private static func check(_ text: String) throws -> ProgramResult {
    let temporary = try TemporaryDirectory()
    let path = try temporary.write(text, to: "storage.html")
    return try Program.run(["python3", "\(Repository.root)/Tests/StoragePage/page.py", path])
  }

  private static func page(_ report: StorageReport) -> String {
    StoragePage(report, withUsers: true, at: 1_795_514_400).text
  }

  @Test func pageIsCompleteAndReadable() throws {
    let report = try Self.report(
      [Self.item(), Self.item(app: "org.example.two", user: "null")].joined(separator: ","))
    let result = try Self.check(Self.page(report))
    #expect(result.status == 0 && result.output == "2 apps, 0 problems\n", "\(result.output)\(result.errors)")
    #expect(try Self.check(Self.page(Self.report(""))).status == 0)
    let text = Self.page(report)
    for word in [
      "documents", "2.0 MB", "Advice", "It ran last at 2026-", "those of 1970-", "A purge would free 4.0 MB",
      "3 more",
    ] {
      #expect(text.contains(word), "\(word)")
    }
  }

  /// The checks find what they are for.
  @Test(arguments: [
    ("</main>", "</main><script>1</script>"), ("<h1>", "<h1 onclick='x'>"), (" lang=\"en\"", ""),
    ("</details>", ""), ("--quiet: #55555c", "--quiet: #aaaaaa"), ("body {", "body { background: url(x);"),
    ("default-src 'none'", "default-src *"), ("scope=\"row\"", ""), ("</h1>", "\u{202e}</h1>"),
    (" aria-label=\"", " title=\""),
  ])
  func problemsOfAPageAreFound(text: String, other: String) throws {
    let page = try Self.page(Self.report(Self.item()))
    try #require(page.contains(text))
    #expect(try Self.check(page.replacingOccurrences(of: text, with: other)).status == 1)
  }

  @Test func namesAreOnlyText() throws {
    let item = try Self.item(app: Self.hostile, name: Self.hostile, example: Self.hostile)
    let text = try Self.page(Self.report(item))
    let result = try Self.check(text)
    #expect(result.status == 0, "\(result.output)")
    #expect(!text.contains("<script") && !text.contains("<img") && text.contains("&lt;script&gt;"))
    #expect(
      StoragePage.escaped("<a b=\"c\" d='e'>&\u{202e}\n") == "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;??")
  }

  @Test(arguments: [Int64.max, .min, -1, 0])
  func senselessNumbersAreShown(bytes: Int64) throws {
    for total in [Int64.max, 0, 1] {
      let report = try Self.report(Self.item(bytes: bytes), total: total)
      #expect(try Self.check(Self.page(report)).status == 0)
      let shown = shown(report, isTerminal: true)
      #expect(shown.contains("org.example.notes"))
    }
  }

  @Test func nothingAppearsThatATerminalObeys() throws {
    let item = try Self.item(app: Self.hostile, name: Self.hostile, example: Self.hostile)
    for isTerminal in [false, true] {
      for inDetail in [false, true] {
        let text = shown(try Self.report(item), isTerminal: isTerminal, inDetail: inDetail)
        #expect(!text.unicodeScalars.contains { $0.value < 0x20 && $0 != "\n" })
        #expect(!text.contains("\u{202e}") && text.contains("█") == isTerminal)
      }
    }
  }

  private final class Collected: Sendable {
    private let bytes = Mutex<[UInt8]>([])
    var text: String { String(decoding: bytes.withLock { $0 }, as: UTF8.self) }
    func add(_ more: [UInt8]) { bytes.withLock { $0 += more } }
  }

  private func shown(_ report: StorageReport, isTerminal: Bool, inDetail: Bool = false) -> String {
    let output = Collected()
    let console = Console(output: { output.add($0) }, errors: { output.add($0) }, isTerminal: isTerminal)
    report.show(inDetail: inDetail, withUsers: true, at: 1_795_514_400, console)
    return output.text
  }

  @Test func historyIsReadFromTheLog() {
    func entry(_ detail: String?) -> PurgeHistory.Entry {
      PurgeHistory.Entry(LogEntry(.purged, user: 501, app: "org.example.app", detail: detail, time: 5000))
    }
    let full = entry("caches, 123 bytes, since the disk is nearly full, really")
    #expect(full.place == .caches && full.bytes == 123 && full.because == "the disk is nearly full, really")
    #expect(full.time == 5 && full.user == 501)
    #expect(entry("tmp, 7 bytes").because == nil && entry("tmp, 7 bytes").place == .tmp)
    for senseless in [nil, "", ",", "x, y, z", "tmp", "tmp, 99999999999999999999 bytes"] {
      #expect(entry(senseless).bytes == nil && entry(senseless).because == nil)
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import LinuxIO
internal import Policy
internal import Synchronization
internal import Testing

/// What `insula top` makes of what is typed and of what it has seen.
@Suite struct TopTests {
  @Test func keysAreRead() {
    var typed = Array(
      "qm\u{1b}[A\u{1b}[B\u{1b}OA\u{1b}[5~\u{1b}[6~\u{1b}[H\u{1b}[4~\u{1b}[99;5uz\u{0}\u{7f}é".utf8)
    #expect(
      ScreenKey.take(from: &typed)
        == [.letter("q"), .letter("m"), .up, .down, .up, .pageUp, .pageDown, .home, .end, .letter("z")])
    #expect(typed.isEmpty)
  }

  @Test func keyThatArrivesInPartsIsOne() {
    var typed: [UInt8] = []
    var keys: [ScreenKey] = []
    for byte in "\u{1b}[5~\u{1b}[Ax".utf8 {
      typed.append(byte)
      keys += ScreenKey.take(from: &typed)
    }
    #expect(keys == [.pageUp, .up, .letter("x")] && typed.isEmpty)
    typed = Array("\u{1b}".utf8)
    #expect(ScreenKey.take(from: &typed).isEmpty)
    typed += Array("q".utf8)
    #expect(ScreenKey.take(from: &typed) == [.letter("q")])
  }

  @Test func endlessKeyIsNotKept() {
    var typed = Array(("\u{1b}[" + String(repeating: "1", count: 1000)).utf8)
    _ = ScreenKey.take(from: &typed)
    #expect(typed.count < 20)
  }

  private func app(
    _ name: String, _ memory: UInt64, _ cpu: Double, _ time: UInt64, _ requests: Double? = nil
  ) -> TopReport.App {
    TopReport.App(
      identifier: name, user: 0, pid: 1, memory: memory, cpuPercent: cpu, cpuMilliseconds: time, processes: 1,
      requests: nil, requestsPerSecond: requests, limits: ResourceLimits())
  }

  @Test func appsAreSorted() {
    let apps = [app("c", 1, 0, 5, 2), app("a", 3, 0, 5), app("b", 2, 9, 7, 0.5)]
    func names(_ column: TopOrder.Column, _ isReversed: Bool = false) -> String {
      TopOrder(column: column, isReversed: isReversed).sorted(apps).map(\.identifier).joined()
    }
    #expect(names(.memory) == "abc" && names(.cpu) == "bac" && names(.time) == "bac" && names(.name) == "abc")
    #expect(names(.requests) == "cba")
    #expect(names(.memory, true) == "cba" && names(.name, true) == "cba")
  }

  @Test func timesAreWritten() {
    #expect(AppInUse.text(ofMilliseconds: 0) == "0:00.00")
    #expect(AppInUse.text(ofMilliseconds: 83_456) == "1:23.45")
    #expect(AppInUse.text(ofMilliseconds: .max) == "307445734561825:51.61")
  }

  /// Whatever an app is called, a screen gets only the sequences that are our own.
  @Test func screenObeysNobodyElse() {
    let drawn = Mutex<[UInt8]>([])
    let console = Console(output: { bytes in drawn.withLock { $0 += bytes } }, errors: { _ in })
    let evil = "\u{1b}]0;owned\u{7}\u{9b}2J\r\nforged\u{202e}"
    console.draw([ScreenLine(evil, isHighlighted: true), ScreenLine(evil)], last: ScreenLine(evil), (4, 20))
    let text = String(decoding: drawn.withLock { $0 }, as: UTF8.self)
    let own = ["\u{1b}[H", "\u{1b}[7m", "\u{1b}[0m", "\u{1b}[K\r\n", "\u{1b}[J", "\u{1b}[4;1H"]
    let rest = own.reduce(text) { $0.replacing($1, with: "") }
    #expect(rest.unicodeScalars.allSatisfy { $0.isPrintable }, "\(rest)")
    #expect(!text.contains("]0;owned\u{7}") && text.contains("?]0;owned??2J"))
  }

  @Test(arguments: [(0, 0), (1, 1), (2, 5), (3, 200)])
  func smallScreensAreFilledAndNoMore(rows: Int, columns: Int) {
    let drawn = Mutex<[UInt8]>([])
    let console = Console(output: { bytes in drawn.withLock { $0 += bytes } }, errors: { _ in })
    let lines = (0..<50).map { ScreenLine("line \($0)", isHighlighted: $0 == 0) }
    console.draw(lines, last: ScreenLine("help"), (rows, columns))
    let text = String(decoding: drawn.withLock { $0 }, as: UTF8.self)
    #expect(text.filter { $0 == "\r\n" }.count == max(0, rows - 1))
  }

  @Test(arguments: ["0", "0.09", "-1", "nan", "inf", "3601", "1s", "", "1e9", "0x1p-1074"])
  func senselessIntervalsAreRefused(text: String) throws {
    #expect(throws: UsageError.self) {
      _ = try TopCommand(try ParsedArguments(["--interval=\(text)"], for: TopCommand.description))
    }
  }

  /// The name of a process is anybody's choice.
  @Test func processesWithAnyNameAreRead() throws {
    let numbers = (3...52).map { $0 == 4 ? "17" : "\($0)" }.dropFirst().joined(separator: " ")
    for name in ["sh", ") R 1 2 3", "a b) (c", "", "\n) S 0"] {
      let entry = try #require(ProcessTable.Entry(5, "5 (\(name)) S \(numbers)"))
      #expect(
        entry.parent == 17 && entry.ticks == 14 + 15 + 16 + 17 && entry.pages == 24 && entry.started == 22)
    }
    for line in ["", "5", "5 (sh)", "5 (sh) S", "5 (sh) S 99999999999 " + numbers, "5 (sh S 1"] {
      #expect(ProcessTable.Entry(5, line) == nil)
    }
  }

  @Test func tableHasThisProcess() throws {
    let table = ProcessTable()
    let own = try #require(table[ProcessID.own])
    #expect(own.pages > 0 && own.threads > 0)
    #expect(table.descendants(of: own.parent).contains { $0.pid == own.pid })
    #expect(table.descendants(of: -1).isEmpty)
  }
}

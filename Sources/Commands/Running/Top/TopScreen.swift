// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// `insula top` at a terminal.
struct TopScreen {
  private let watch: TopWatch
  private let nanoseconds: UInt64
  private var before: TopSample
  private var report: TopReport
  private var order = TopOrder()
  /// How many apps are above the first one that is shown.
  private var offset = 0

  init(_ watch: TopWatch, nanoseconds: UInt64) throws {
    self.watch = watch
    self.nanoseconds = nanoseconds
    before = try watch.look()
    report = TopReport(from: before, to: before)
  }

  func run(_ console: Console) throws -> ExitCode {
    var copy = self
    return try copy.show(console)
  }

  private mutating func show(_ console: Console) throws -> ExitCode {
    let screen: FullScreen
    do throws(Errno) {
      screen = try FullScreen(console)
    } catch {
      throw CommandFailure(.failed, "can't use the terminal: \(error.message); use 'insula top --once'")
    }
    defer { screen.end() }
    // The first look has nothing to compare with, so the second one comes soon.
    var deadline = monotonicNanoseconds() + min(nanoseconds, 500_000_000)
    while true {
      draw(console, screen.size)
      switch try screen.next(until: deadline) {
      case .ended(let signal): return .program(128 + signal)
      case .changed: continue
      case .typed(let keys):
        for key in keys {
          guard obey(key, rows: screen.size.rows) else { return .ok }
        }
      case .timeIsOver:
        deadline = monotonicNanoseconds() + nanoseconds
        let now = try watch.look()
        report = TopReport(from: before, to: now)
        before = now
      }
    }
  }

  /// False if that was the end.
  private mutating func obey(_ key: ScreenKey, rows: Int) -> Bool {
    let page = max(1, rows - 8)
    switch key {
    case .letter("q"), .letter("Q"): return false
    case .letter("m"): order.column = .memory
    case .letter("c"): order.column = .cpu
    case .letter("t"): order.column = .time
    case .letter("s"): order.column = .requests
    case .letter("n"): order.column = .name
    case .letter("r"): order.isReversed.toggle()
    case .up: offset -= 1
    case .down: offset += 1
    case .pageUp: offset -= page
    case .pageDown: offset += page
    case .home: offset = 0
    case .end: offset = report.apps.count
    case .letter: break
    }
    offset = min(max(0, offset), max(0, report.apps.count - 1))
    return true
  }

  private func draw(_ console: Console, _ size: (rows: Int, columns: Int)) {
    let layout = TopLayout(report, order: order)
    let table = Console.aligned([TopLayout.columns] + layout.rows.dropFirst(offset))
    let first = ScreenLine(table.first ?? "", isHighlighted: true)
    let lines =
      (layout.head + [""]).map { ScreenLine($0) } + [first] + table.dropFirst().map { ScreenLine($0) }
    let help = ScreenLine("q end   m c t s n sort by memory, CPU, time, requests, name   r reverse   arrows")
    console.draw(lines, last: help, size)
  }
}

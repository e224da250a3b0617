// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Daemon
internal import Fuse
internal import Policy
internal import Store
internal import Testing
internal import Volume

/// What is refused again and again, and too much, is counted; nobody takes the place of another.
@Suite struct RefusalTableTests {
  private static let second: UInt64 = 1_000_000_000

  private func refusal(_ key: Int, user: UInt32 = 1001, app: String = "org.example.a") -> Refusal {
    Refusal(
      app: AppIdentifier(app), user: user, thread: 0, operation: .write, rule: .view, key: key)
  }

  private func moment(_ seconds: UInt64) -> RefusalTable.Moment {
    RefusalTable.Moment(nanoseconds: seconds * Self.second + 1, milliseconds: Int64(seconds) * 1000)
  }

  private func note(_ refusal: Refusal, _ table: inout RefusalTable, at seconds: UInt64) -> Bool {
    guard table.note(refusal, at: moment(seconds)) else { return false }
    let entry = LogEntry(
      .denied, user: refusal.user, app: refusal.app?.text, path: "\(refusal.key)", time: 0)
    table.add(entry, length: 200, for: refusal)
    return true
  }

  @Test func repetitionsAreCounted() {
    var table = RefusalTable()
    #expect(note(refusal(1), &table, at: 0))
    for _ in 0..<4321 { #expect(!note(refusal(1), &table, at: 5)) }
    #expect(note(refusal(2), &table, at: 5))
    #expect(table.due(at: moment(59)).isEmpty)
    let told = table.due(at: moment(60))
    #expect(told.map(\.path) == ["1"] && told.first?.more == 4321 && told.first?.until == 5000)
    // What happens only once more is counted too.
    #expect(!note(refusal(1), &table, at: 61))
    #expect(table.due(at: moment(119)).isEmpty)
    #expect(table.due(at: moment(121)).map(\.more) == [1])
    #expect(table.due(at: moment(200)).isEmpty)
    // After that it is new.
    #expect(note(refusal(1), &table, at: 300))
    #expect(!note(refusal(1), &table, at: 301))
    #expect(table.due(at: moment(302), isLast: true).map(\.more) == [1])
  }

  /// A thousand different ones each second for ten minutes.
  @Test func floodHasABound() {
    var table = RefusalTable()
    var lines = 0
    var counted: UInt64 = 0
    for second in 0..<600 as Range<UInt64> {
      for index in 0..<1000 where note(refusal(Int(second) * 1000 + index), &table, at: second) { lines += 1 }
      for entry in table.due(at: moment(second)) {
        lines += 1
        counted += entry.operation == nil && entry.path == nil ? entry.more ?? 0 : 0
      }
    }
    #expect((30..<1000).contains(lines), "\(lines)")
    #expect(counted > 500_000)
    // Meanwhile others are as if alone.
    for key in 0..<10 { #expect(note(refusal(key, app: "org.example.b"), &table, at: 600)) }
    for key in 0..<10 { #expect(note(refusal(key, user: 1002), &table, at: 600)) }
    #expect(table.count == 3)
    // And it is forgotten in the end.
    for minute in 11..<25 as Range<UInt64> { _ = table.due(at: moment(minute * 60)) }
    #expect(table.isQuiet)
  }

  @Test func sourcesHaveABound() {
    var table = RefusalTable()
    for user in 0..<10_000 { _ = note(refusal(1, user: 3_000_000_000 + UInt32(user)), &table, at: 0) }
    #expect(table.count == RefusalTable.mostSources)
    #expect(table.lost == 10_000 - UInt64(RefusalTable.mostSources))
    _ = table.due(at: moment(600))
    #expect(table.isQuiet)
  }

  @Test func longLinesCostMore() {
    var table = RefusalTable()
    var lines = 0
    for key in 0..<1000 where table.note(refusal(key), at: moment(0)) {
      table.add(LogEntry(.denied, time: 0), length: 4000, for: refusal(key))
      lines += 1
    }
    #expect((2...5).contains(lines))
  }
}

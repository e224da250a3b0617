// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Daemon
internal import LinuxIO
internal import Store
internal import Testing

/// How the log words the end of an app, by what is known of it.
@Suite struct EndedEntryTests {
  private struct Row: CustomTestStringConvertible, Sendable {
    let told: AppEnding?
    let wish: KnownEnd.Wish
    let ending: String
    let signal: String?
    let by: UInt32?
    let words: String

    init(
      _ told: AppEnding?, _ wish: KnownEnd.Wish, _ ending: String, signal: String? = nil, by: UInt32? = nil,
      _ words: String
    ) {
      (self.told, self.wish, self.ending, self.signal) = (told, wish, ending, signal)
      (self.by, self.words) = (by, words)
    }

    var testDescription: String { "\(ending): \(words)" }
  }

  private static let rows = [
    Row(AppEnding(status: 0), .none, "exited", "exit status 0"),
    Row(AppEnding(status: 127), .none, "exited", "exit status 127"),
    Row(AppEnding(status: 128), .none, "exited", "exit status 128"),
    Row(AppEnding(status: 139), .none, "signal", signal: "SEGV", "signal SEGV"),
    Row(AppEnding(status: 128 + 64), .none, "signal", signal: "RTMIN+30", "signal RTMIN+30"),
    Row(AppEnding(status: 255), .none, "exited", "exit status 255"),
    Row(
      AppEnding(status: 137, limit: .memory), .none, "memory", signal: "KILL",
      "by the kernel, because it used more memory than its limit, signal KILL"),
    Row(
      AppEnding(status: 0, limit: .memory), .none, "exited",
      "exit status 0, had reached its limit of memory"),
    Row(
      AppEnding(status: 1, limit: .processes), .none, "exited",
      "exit status 1, had reached its limit of processes"),
    Row(
      AppEnding(status: 143), .kill(by: 7, signal: nil), "killed", signal: "TERM", by: 7,
      "by 'insula kill', signal TERM"),
    Row(AppEnding(status: 0), .kill(by: 7, signal: nil), "killed", by: 7, "by 'insula kill', exit status 0"),
    Row(
      AppEnding(status: 129), .kill(by: 7, signal: 1), "killed", signal: "HUP", by: 7,
      "by 'insula kill', signal HUP"),
    // It went on after that signal.
    Row(AppEnding(status: 0), .kill(by: 7, signal: 1), "exited", "exit status 0"),
    Row(AppEnding(status: 137), .kill(by: 7, signal: 1), "signal", signal: "KILL", "signal KILL"),
    Row(nil, .kill(by: 7, signal: 9), "killed", signal: "KILL", by: 7, "by 'insula kill', signal KILL"),
    Row(nil, .kill(by: 7, signal: 1), "unknown", "'insula run' was ended before it could tell"),
    Row(nil, .kill(by: 7, signal: nil), "killed", by: 7, "by 'insula kill'"),
    Row(nil, .unmount(by: nil), "unmounted", "because the store was unmounted"),
    Row(
      AppEnding(status: 143), .unmount(by: 0), "unmounted", signal: "TERM", by: 0,
      "because the store was unmounted, signal TERM"),
    Row(AppEnding(status: nil), .none, "not-started", "without being started"),
    Row(nil, .none, "unknown", "'insula run' was ended before it could tell"),
  ]

  @Test(arguments: rows) private func saysWhatIsKnown(row: Row) {
    let entry = LogEntry(
      ended: KnownEnd(told: row.told, wish: row.wish), user: 1000, app: "a.b", pid: 5, since: 0)
    #expect(entry.ending?.rawValue == row.ending && entry.signal == row.signal)
    #expect(entry.status == row.told?.status && entry.by == row.by)
    #expect(entry.detail?.hasSuffix(", " + row.words) == true || entry.detail?.hasSuffix(row.words) == true)
    #expect(entry.detail?.hasPrefix("after ") == true)
  }

  /// Whoever has ended an app of their own is not named twice.
  @Test func ownersAreNotNamed() {
    let end = KnownEnd(told: nil, wish: .kill(by: 1000, signal: nil))
    #expect(LogEntry(ended: end, user: 1000, app: "a.b", pid: 5, since: 0).by == nil)
  }

  /// When it began is what another worker has left of it, which may be damaged.
  @Test(arguments: [Int64.min, .max, -1]) func senselessBeginningIsNoTrap(since: Int64) {
    let entry = LogEntry(
      ended: KnownEnd(told: nil, wish: .none), user: 1000, app: "a.b", pid: 5, since: since)
    #expect(entry.detail?.hasPrefix("after ") == true && entry.detail?.contains("-") == false)
  }

  @Test func signalsHaveTheirNames() {
    let known: [(Int32, String?)] = [
      (0, nil), (1, "HUP"), (9, "KILL"), (11, "SEGV"), (15, "TERM"), (31, "SYS"), (32, nil), (33, nil),
      (34, "RTMIN"), (64, "RTMIN+30"), (65, nil), (-1, nil), (.max, nil), (.min, nil),
    ]
    for (number, name) in known { #expect(SignalName.of(number) == name, "\(number)") }
  }
}

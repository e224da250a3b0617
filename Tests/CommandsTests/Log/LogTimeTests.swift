// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Glibc
internal import Testing

/// Times as people write them.
@Suite struct LogTimeTests {
  private static let now: Int64 = 1_795_528_800

  private static func local(
    _ year: Int32, _ month: Int32, _ day: Int32, _ hour: Int32 = 0, _ minute: Int32 = 0
  )
    -> Int64
  {
    var parts = tm()
    (parts.tm_year, parts.tm_mon, parts.tm_mday) = (year - 1900, month - 1, day)
    (parts.tm_hour, parts.tm_min, parts.tm_isdst) = (hour, minute, -1)
    return Int64(mktime(&parts))
  }

  @Test func areUnderstood() {
    func seconds(_ text: String) -> Int64? { LogTime.seconds(of: text, now: Self.now) }
    for (text, ago) in [
      ("0s", 0), ("30s", 30), ("10m", 600), ("2h", 7200), ("3d", 259_200), ("1w", 604_800),
    ] as [(String, Int64)] { #expect(seconds(text) == Self.now - ago, "\(text)") }
    #expect(seconds("2026-11-24") == Self.local(2026, 11, 24))
    for text in ["2026-11-24 10:00", "2026-11-24T10:00", "2026-11-24 10:00:00", "2026-11-24T10:00:00.125"] {
      #expect(seconds(text) == Self.local(2026, 11, 24, 10), "\(text)")
    }
    for text in [
      "2026-11-24T10:00:00Z", "2026-11-24 10:00Z", "2026-11-24T11:00:00+01:00", "2026-11-24T04:30:00-0530",
      "2026-11-24T10:00:00.5Z",
    ] { #expect(seconds(text) == 1_795_514_400, "\(text)") }
    var parts = tm()
    var today = time_t(seconds("today") ?? 0)
    localtime_r(&today, &parts)
    #expect(parts.tm_hour == 0 && parts.tm_min == 0 && parts.tm_sec == 0)
    #expect((0..<90_000).contains(Self.now - Int64(today)))
    #expect((80_000..<180_000).contains(Self.now - (seconds("yesterday") ?? 0)))
  }

  @Test(
    arguments: [
      "", " ", "10", "m", "-5m", "1.5h", "10x", "99999999999d", "tomorrow", "2026", "2026-11", "2026-13-01",
      "2026-02-30", "2026-11-24 ", "2026-11-24T", "2026-11-24 25:00", "2026-11-24 10", "2026-11-24 10:0",
      "2026-11-24 10:00:99", "2026-11-24 10:00 11:00", "26-11-24", "2026-11-24T10:00+25:00",
      "2026-11-24T10:00+1",
      "１０m", "2026-11-24 10:00.x", "\u{0}", "1969-12-31",
    ])
  func otherWordsAreNone(text: String) { #expect(LogTime.seconds(of: text, now: Self.now) == nil) }

  @Test func areShown() {
    #expect(LogTime.text(Self.local(2026, 1, 2, 3, 4) * 1000 + 999) == "2026-01-02 03:04:00")
    #expect(LogTime.isoText(1_795_514_400_007) == "2026-11-24T10:00:00.007Z")
    #expect(LogTime.isoText(1_795_514_400_000) == "2026-11-24T10:00:00Z")
    for odd in [Int64.min, -1, 0, Int64.max] {
      #expect(!LogTime.text(odd).isEmpty && !LogTime.isoText(odd).isEmpty)
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

/// Times as people write and read them in the log.
enum LogTime {
  /// On the reader's own clock: `2026-11-24 10:00:00`.
  static func text(_ milliseconds: Int64) -> String {
    var seconds = time_t(milliseconds / 1000)
    var parts = tm()
    guard localtime_r(&seconds, &parts) != nil else { return isoText(milliseconds) }
    func two(_ number: Int32) -> String { (number < 10 ? "0" : "") + "\(number)" }
    let (year, overflows) = parts.tm_year.addingReportingOverflow(1900)
    guard !overflows else { return isoText(milliseconds) }
    let date = "\(year)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
    return "\(date) \(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))"
  }

  /// For programs.
  static func isoText(_ milliseconds: Int64) -> String {
    let text = utcText(milliseconds / 1000)
    let rest = Int(milliseconds % 1000)
    guard rest > 0, text.hasSuffix("Z") else { return text }
    let digits = "\(rest)"
    return text.dropLast() + "." + String(repeating: "0", count: 3 - digits.count) + digits + "Z"
  }

  /// The seconds since 1970 of a time that a person has written: `10m`, `today`, `2026-11-24 10:00`, or as in
  /// ISO 8601; nil for anything else.
  static func seconds(of text: String, now: Int64) -> Int64? {
    ago(text, now) ?? day(text, now) ?? moment(text)
  }

  private static func ago(_ text: String, _ now: Int64) -> Int64? {
    let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604_800]
    guard let unit = text.last.flatMap({ units[$0] }), let count = number(text.dropLast(), digits: 1...9)
    else {
      return nil
    }
    return now - Int64(count) * unit
  }

  private static func day(_ text: String, _ now: Int64) -> Int64? {
    guard text == "today" || text == "yesterday" else { return nil }
    var seconds = time_t(now)
    var parts = tm()
    guard localtime_r(&seconds, &parts) != nil else { return nil }
    (parts.tm_hour, parts.tm_min, parts.tm_sec, parts.tm_isdst) = (0, 0, 0, -1)
    if text == "yesterday" { parts.tm_mday -= 1 }
    return Int64(mktime(&parts))
  }

  /// A date, and a time of day after a space or a `T`, with the difference to UTC if need be.
  private static func moment(_ text: String) -> Int64? {
    let pieces = text.split(whereSeparator: { $0 == " " || $0 == "T" })
    guard (1...2).contains(pieces.count), text.first?.isNumber == true, text.last != " ", text.last != "T"
    else {
      return nil
    }
    let date = pieces[0].parts(between: "-", keepingEmpty: true)
    guard date.count == 3, let year = number(date[0], digits: 4...4),
      let month = number(date[1], digits: 2...2),
      let day = number(date[2], digits: 2...2), year >= 1970, (1...12).contains(month), (1...31).contains(day)
    else { return nil }
    var parts = tm()
    (parts.tm_year, parts.tm_mon, parts.tm_mday) = (Int32(year - 1900), Int32(month - 1), Int32(day))
    parts.tm_isdst = -1
    guard pieces.count == 2 else { return seconds(&parts, day: day, offset: nil) }
    guard let (clock, offset) = withoutOffset(pieces[1]), let time = timeOfDay(clock) else { return nil }
    (parts.tm_hour, parts.tm_min, parts.tm_sec) = time
    return seconds(&parts, day: day, offset: offset)
  }

  /// Nil for a day that its month does not have.
  private static func seconds(_ parts: inout tm, day: Int, offset: Int64?) -> Int64? {
    let found = offset.map { Int64(timegm(&parts)) - $0 } ?? Int64(mktime(&parts))
    return Int(parts.tm_mday) == day ? found : nil
  }

  /// Hours, minutes and seconds; parts of a second make no difference.
  private static func timeOfDay(_ text: Substring) -> (Int32, Int32, Int32)? {
    let whole = text.parts(between: ".", max: 1, keepingEmpty: true)
    if whole.count == 2, number(whole[1], digits: 1...9) == nil { return nil }
    let numbers = whole[0].parts(between: ":", keepingEmpty: true).map {
      number($0, digits: 2...2)
    }
    guard (2...3).contains(numbers.count), let hour = numbers[0], let minute = numbers[1], hour < 24,
      minute < 60
    else { return nil }
    guard numbers.count == 3 else { return (Int32(hour), Int32(minute), 0) }
    guard let second = numbers[2], second < 61 else { return nil }
    return (Int32(hour), Int32(minute), Int32(second))
  }

  /// The difference to UTC in seconds: of `Z`, `+01:00` or `+0100`; nil for the reader's own.
  private static func withoutOffset(_ text: Substring) -> (Substring, Int64?)? {
    if text.last == "Z" { return (text.dropLast(), 0) }
    guard let sign = text.lastIndex(where: { $0 == "+" || $0 == "-" }) else { return (text, nil) }
    let digits = text[text.index(after: sign)...].filter { $0 != ":" }
    guard let hours = number(digits.prefix(2), digits: 2...2), hours < 24,
      let minutes = number(digits.dropFirst(2), digits: 2...2), minutes < 60
    else { return nil }
    let offset = Int64(hours * 3600 + minutes * 60)
    return (text[..<sign], text[sign] == "-" ? -offset : offset)
  }

  private static func number(_ text: some StringProtocol, digits: ClosedRange<Int>) -> Int? {
    guard digits.contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
      return nil
    }
    return Int(text)
  }
}

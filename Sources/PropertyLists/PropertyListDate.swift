// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Dates as XML property lists write them: `2026-01-31T23:59:59Z`.
enum PropertyListDate {
  private static let form = Array("dddd-dd-ddTdd:dd:ddZ".utf8)
  /// From the first day of the calendar, 0001-01-01, to that of these dates, 2001-01-01.
  private static let daysToStart = 730_485
  private static let secondsOfDay = 86400

  /// Seconds since the start of 2001; nil if it is no date.
  static func seconds(_ text: ArraySlice<UInt8>) -> Double? {
    guard text.count == form.count else { return nil }
    var numbers = [0]
    for (byte, expected) in zip(text, form) {
      if expected == 0x64 {
        guard case 0x30...0x39 = byte else { return nil }
        numbers[numbers.count - 1] = numbers[numbers.count - 1] * 10 + Int(byte - 0x30)
      } else {
        guard byte == expected else { return nil }
        numbers.append(0)
      }
    }
    let (year, month, day) = (numbers[0], numbers[1], numbers[2])
    guard year > 0, (1...12).contains(month), day > 0, day <= days(in: month, of: year),
      numbers[3] < 24, numbers[4] < 60, numbers[5] < 60
    else { return nil }
    let whole =
      days(before: year) - daysToStart + (1..<month).reduce(0) { $0 + days(in: $1, of: year) } + day - 1
    return Double(whole * secondsOfDay + numbers[3] * 3600 + numbers[4] * 60 + numbers[5])
  }

  /// The text for a date, to the second; nil for years that have no four digits.
  static func text(_ seconds: Double) -> String? {
    let limit = Double(daysToStart * secondsOfDay)
    guard seconds >= -limit, seconds < 400_000 * Double(secondsOfDay) * 10 else { return nil }
    // Nothing is negative from here on.
    let total = Int(seconds.rounded(.down)) + daysToStart * secondsOfDay
    var day = total / secondsOfDay
    let time = total % secondsOfDay
    var year = day / 366 + 1
    while days(before: year + 1) <= day { year += 1 }
    guard year <= 9999 else { return nil }
    day -= days(before: year)
    var month = 1
    while day >= days(in: month, of: year) {
      day -= days(in: month, of: year)
      month += 1
    }
    return "\(pad(year, 4))-\(pad(month))-\(pad(day + 1))"
      + "T\(pad(time / 3600)):\(pad(time / 60 % 60)):\(pad(time % 60))Z"
  }

  private static func pad(_ number: Int, _ width: Int = 2) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }

  private static func isLeap(_ year: Int) -> Bool { year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) }

  /// Days from the start of the calendar to the first of a year.
  private static func days(before year: Int) -> Int {
    let before = year - 1
    return before * 365 + before / 4 - before / 100 + before / 400
  }

  private static func days(in month: Int, of year: Int) -> Int {
    switch month {
    case 2: isLeap(year) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }
}

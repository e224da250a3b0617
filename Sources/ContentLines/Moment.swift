// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Dates and times, from how RFC 5545 writes them to how ISO 8601 does for people.
struct Moment: Equatable {
  /// `2024-01-31`, `2024-01-31T10:15:00`, or with a Z at its end where that is UTC.
  let text: String
  let isDate: Bool

  /// Nil for what is no day or time of this calendar.
  init?(_ value: String) {
    let units = Array(value.utf8.prefix(20))
    guard let date = Moment.date(String(decoding: units.prefix(8), as: UTF8.self)), units.count >= 8,
      units.first != UInt8(ascii: "-")
    else { return nil }
    let rest = units.dropFirst(8)
    if rest.isEmpty {
      (text, isDate) = (date, true)
      return
    }
    let digits = rest.dropFirst().prefix(6)
    let end = rest.dropFirst(7)
    guard rest.first == UInt8(ascii: "T"), digits.count == 6, end.isEmpty || end.elementsEqual("Z".utf8),
      let time = Self.numbers(digits, [2, 2, 2]), time[0] < 24, time[1] < 60, time[2] <= 60
    else { return nil }
    let pairs = [digits.prefix(2), digits.dropFirst(2).prefix(2), digits.dropFirst(4)]
    let clock = pairs.map { String(decoding: $0, as: UTF8.self) }.joined(separator: ":")
    (text, isDate) = ("\(date)T\(clock)\(end.isEmpty ? "" : "Z")", false)
  }

  /// A day with hyphens, from one with or without them; without a year it begins with two hyphens.
  static func date(_ value: String) -> String? {
    var units = value.utf8.prefix(11).filter { $0 != UInt8(ascii: "-") }
    let hasYear = !value.utf8.starts(with: "--".utf8)
    guard units.count == (hasYear ? 8 : 4), value.utf8.count <= 10 else { return nil }
    let days = units.suffix(4)
    guard let numbers = numbers(days, [2, 2]), (1...12).contains(numbers[0]), (1...31).contains(numbers[1]),
      Self.numbers(units[...], [units.count]) != nil
    else { return nil }
    let day = [days.prefix(2), days.suffix(2)].map { String(decoding: $0, as: UTF8.self) }.joined(
      separator: "-")
    units.removeLast(4)
    return "\(hasYear ? String(decoding: units, as: UTF8.self) : "-")-\(day)"
  }

  /// The numbers that so many digits each are; nil if one of them is no digit.
  private static func numbers(_ digits: ArraySlice<UInt8>, _ widths: [Int]) -> [Int]? {
    var rest = digits
    var numbers: [Int] = []
    for width in widths {
      var number = 0
      for byte in rest.prefix(width) {
        guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
        number = number &* 10 &+ Int(byte &- UInt8(ascii: "0"))
      }
      numbers.append(number)
      rest = rest.dropFirst(width)
    }
    return numbers
  }
}

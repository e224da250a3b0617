// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc

/// A time as a day for people, in UTC; `time` is in seconds since 1970.
package func calendarDay(_ time: Int64) -> String {
  var seconds = time_t(time)
  var parts = tm()
  guard gmtime_r(&seconds, &parts) != nil else { return "an unknown day" }
  func digits(_ number: Int32) -> String { (number < 10 ? "0" : "") + String(number) }
  return "\(Int(parts.tm_year) + 1900)-\(digits(parts.tm_mon + 1))-\(digits(parts.tm_mday))"
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc

/// A time in seconds since 1970 as a date and time of day in UTC, as in ISO 8601: `2026-11-24T03:06:28Z`.
package func utcText(_ seconds: Int64) -> String {
  var time = time_t(seconds)
  var parts = tm()
  guard gmtime_r(&time, &parts) != nil else { return "\(seconds)" }
  var text = [CChar](repeating: 0, count: 64)
  let length = strftime(&text, text.count, "%Y-%m-%dT%H:%M:%SZ", &parts)
  return String(decoding: text[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import Glibc

/// A directory to be measured, and the process that serves it if there is one.
struct Contender: Sendable {
  let name: String
  let directory: String
  let pid: pid_t?

  /// Reads `NAME=DIR` or `NAME=DIR:PID`.
  init?(_ text: String) {
    let halves = text.split(separator: "=", maxSplits: 1)
    guard halves.count == 2 else { return nil }
    self.init(name: String(halves[0]), place: String(halves[1]))
  }

  /// Reads `DIR` or `DIR:PID`.
  init?(name: String, place: String) {
    var directory = place
    var pid: pid_t?
    if let colon = place.lastIndex(of: ":"), let number = pid_t(place[place.index(after: colon)...]) {
      directory = String(place[..<colon])
      pid = number
    }
    guard directory.hasPrefix("/") else { return nil }
    self.name = name
    self.directory = directory
    self.pid = pid
  }
}

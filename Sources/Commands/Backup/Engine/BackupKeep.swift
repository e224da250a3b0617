// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

/// Which backups are kept: `last=3,daily=7,weekly=4`.
struct BackupKeep: Equatable {
  private static let units = ["last", "hourly", "daily", "weekly", "monthly", "yearly"]
  static let standard = "daily=7,weekly=5,monthly=12,yearly=3"
  /// For the manual.
  static let words = "what to keep, for example '\(standard)'"
  static let unitWords = units.joined(separator: ", ")

  private let counts: [(unit: String, count: Int)]

  /// Nil for what says nothing, or to keep nothing.
  init?(_ text: String) {
    var counts: [(unit: String, count: Int)] = []
    for part in text.parts(between: ",", keepingEmpty: true) {
      let words = part.parts(between: "=", keepingEmpty: true)
      guard words.count == 2, let unit = Self.units.first(where: { $0 == words[0] }),
        let count = Int(words[1]), (1...100_000).contains(count), !counts.contains(where: { $0.unit == unit })
      else { return nil }
      counts.append((unit, count))
    }
    self.counts = counts
  }

  /// For restic.
  var options: [String] { counts.flatMap { ["--keep-\($0.unit)", "\($0.count)"] } }

  static func == (left: BackupKeep, right: BackupKeep) -> Bool { left.options == right.options }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What `insula doctor` says of one thing.
struct Diagnosis: Codable, Equatable {
  /// How much it matters.
  enum Level: String, Codable {
    case ok
    /// It works, and something is missing or slower.
    case warn
    /// Insula can't mount.
    case fail

    var color: Console.Color {
      switch self {
      case .ok: .green
      case .warn: .yellow
      case .fail: .red
      }
    }
  }

  let name: String
  let level: Level
  let finding: String
  /// What to do; nil if nothing has to be done.
  var advice: String?
}

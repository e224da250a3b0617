// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon

/// Whether a daemon knows which apps its store has.
struct AppsDiagnosis {
  private let paths: [String]
  private let context: Context

  /// Asks the daemon of the first of these stores that has one.
  init(_ paths: [String], _ context: Context) {
    self.paths = paths
    self.context = context
  }

  /// Nothing where it knows them, or nothing is mounted.
  var all: [Diagnosis] {
    guard let found = DaemonSearch(context).daemon(at: paths), let reason = found.status.appsUnknown else {
      return []
    }
    return [
      Diagnosis(
        name: "apps", level: .warn,
        finding: "\(found.status.store) is served without apps, volumes and homes on volumes: \(reason)",
        advice: "once that is done, run 'insula restart \(found.status.store)': programs that use the mount "
          + "go on")
    ]
  }
}

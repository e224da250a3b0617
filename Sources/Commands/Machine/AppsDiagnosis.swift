// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon

/// Whether a daemon knows which apps its store has.
struct AppsDiagnosis {
  let found: DaemonSearch.Found

  /// Nothing where it knows them.
  var all: [Diagnosis] {
    guard let reason = found.status.appsUnknown else { return [] }
    return [
      Diagnosis(
        name: "apps", level: .warn,
        finding: "\(found.status.store) is served without apps, volumes and homes on volumes: \(reason)",
        advice: "once that is done, run 'insula restart \(found.status.store)': programs that use the mount "
          + "go on")
    ]
  }
}

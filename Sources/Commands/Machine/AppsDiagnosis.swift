// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon

/// Whether a daemon knows which apps its store has.
struct AppsDiagnosis {
  let found: DaemonSearch.Found

  /// Nothing where it knows them.
  var all: [Diagnosis] {
    guard let reason = found.status.appsUnknown else { return unconfirmed }
    return unconfirmed + [
      Diagnosis(
        name: "apps", level: .warn,
        finding: "\(found.status.store) is served without apps, volumes and homes on volumes: \(reason)",
        advice: "once that is done, run 'insula restart \(found.status.store)': programs that use the mount "
          + "go on")
    ]
  }

  private var unconfirmed: [Diagnosis] {
    let count = found.status.unconfirmedVolumes
    guard count > 0 else { return [] }
    return [
      Diagnosis(
        name: "volumes", level: .warn,
        finding: "volumes of \(found.status.store) that were not added on this machine are not there: "
          + "\(count)",
        advice: "'insula volume list' names them, and 'insula volume confirm NAME' lets one be there, after "
          + "showing what it is")
    ]
  }
}

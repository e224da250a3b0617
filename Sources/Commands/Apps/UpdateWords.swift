// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import Daemon
internal import Policy
internal import Store

// What is said of updates.

extension UpdateOutcome {
  /// What happened, for people.
  func words(_ domain: String) -> String {
    switch self {
    case .updated(let before, let now, _):
      "Updated \(now.name.sanitized) from \(before.release) to \(now.release), \(domain)."
    case .waits(let waiting):
      "\(waiting.app.name.sanitized) \(waiting.before.release) is running; \(waiting.app.release) is ready "
        + "and takes its place when it ends, \(domain)."
    }
  }

  /// For programs; the new version is either there now or waits.
  var json: [String: InstalledApp] {
    switch self {
    case .updated(let before, let now, _): ["before": before, "now": now]
    case .waits(let waiting): ["before": waiting.before, "waiting": waiting.app]
    }
  }

  /// What stays of containers that went.
  var left: [LeftBehind] { if case .updated(_, _, let left) = self { left } else { [] } }
}

extension WaitingOutcome {
  /// What happened to an update that had waited when this command came.
  func tell(in root: String, _ console: Console) {
    switch self {
    case .updated(let before, let now, let left):
      left.tell(in: root, console)
      console.note(
        "an update that waited took place: \(now.name.sanitized) from \(before.release) to \(now.release)")
    case .dropped(let waiting, let failure):
      console.note("the update of \(waiting.app.identifier) that waited was given up: \(failure)")
    case .postponed(let waiting, let failure):
      console.note("the update of \(waiting.app.identifier) waits on: \(failure)")
    }
  }
}

extension SourceUpdate {
  /// Says what has come of each app.
  func tell(_ results: [Result], json: Bool) {
    let console = access.context.console
    guard !json else {
      return console.print(
        json: Report(source: source.name, issued: index.issued, team: signer.team, apps: results))
    }
    if results.isEmpty { console.say("All apps are up to date.") }
    for one in results {
      let app = one.identifier.sanitized + (one.home.map { ", of \($0.sanitized)" } ?? "")
      let versions = "\(one.installed.sanitized) to \(one.available.sanitized)"
      switch one.result {
      case .updated: console.say("Updated \(app), from \(versions).")
      case .waits: console.say("\(app) is running, and is updated from \(versions) when it ends.")
      case .available: console.print("\(app): \(versions)")
      case .failed: console.note("\(app), \(versions): \((one.message ?? "").sanitized)")
      }
    }
  }
}

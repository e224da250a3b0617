// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Apps
package import LinuxIO
package import Policy
package import Store

// Updates that wait until their apps run no more.

/// What has come of an update that has waited.
package enum WaitingOutcome: Sendable {
  case updated(before: InstalledApp, now: InstalledApp, left: [LeftBehind])
  /// It was given up: waiting longer would change nothing.
  case dropped(WaitingUpdate, AppFailure)
  /// It waits on, and the next occasion is another attempt.
  case postponed(WaitingUpdate, AppFailure)
}

extension AppRequestHandler {
  package func updateWhenClosed(
    _ source: FD, named name: String, for domain: AppDomain, by caller: CallerIdentity,
    allowingDowngrade: Bool, _ wait: InstallWait
  ) throws(ControlFailure) -> UpdateOutcome {
    let outcome = try explaining { () throws(AppFailure) in
      try installer(for: domain).updateWhenClosed(
        source, named: name, for: domain, by: caller, allowingDowngrade: allowingDowngrade, wait)
    }
    switch outcome {
    case .updated(let before, let now, _): note(before, now, by: caller)
    case .waits(let waiting):
      let versions = "version \(waiting.app.version) instead of \(waiting.before.version)"
      log([LogEntry(.updateWaits, waiting.app, by: caller, detail: versions)])
    }
    return outcome
  }

  package func cancelUpdate(
    of identifier: AppIdentifier, for domain: AppDomain, by caller: CallerIdentity
  ) throws(ControlFailure) -> WaitingUpdate {
    let waiting = try explaining { () throws(AppFailure) in
      try installer().cancelUpdate(of: identifier, for: domain, by: caller)
    }
    log([LogEntry(.updateCancelled, waiting.app, by: caller, detail: "version \(waiting.app.version)")])
    return waiting
  }

  /// Puts those updates in place that have waited for apps that run no more.
  ///
  /// What can't be put in place keeps nobody from anything else.
  @discardableResult
  package func placeWaiting() throws(StoreError) -> [WaitingOutcome] {
    try registry.waitingUpdates().compactMap(place)
  }

  /// The same for one of them; nil if its app still runs.
  func place(_ waiting: WaitingUpdate) -> WaitingOutcome? {
    guard observer.users(of: waiting.before.path).isEmpty else { return nil }
    let caller = CallerIdentity(waiting.requester)
    do throws(AppFailure) {
      let done = try installer(for: AppDomain(ofEveryones: waiting.before.path)).place(waiting)
      note(done.before, done.now, by: caller)
      return .updated(before: done.before, now: done.now, left: done.left)
    } catch {
      switch error {
      // It has been started again, or something else is being done to it.
      case .runningOldVersion, .busy, .failed(_, _, .EBUSY): return nil
      case .containersNotMade:
        // The new version is there, and the next use makes the rest.
        note(waiting.before, waiting.app, by: caller)
        return .updated(before: waiting.before, now: waiting.app, left: [])
      case .failed, .noSpace, .cancelled, .trust: return .postponed(waiting, error)
      case .store(let failure) where failure.mayPass: return .postponed(waiting, error)
      default: return drop(waiting, error)
      }
    }
  }

  private func drop(_ waiting: WaitingUpdate, _ failure: AppFailure) -> WaitingOutcome? {
    // Another one may have taken its place, or it may have been cancelled.
    guard (try? installer().drop(waiting)) == true else { return nil }
    noteFailure(of: waiting, "it was given up: \(failure)")
    return .dropped(waiting, failure)
  }

  func noteFailure(of waiting: WaitingUpdate, _ why: String) {
    let detail = "version \(waiting.app.version), \(why)"
    log([LogEntry(.updateFailed, waiting.app, by: CallerIdentity(waiting.requester), detail: detail)])
  }
}

extension UpdateOutcome {
  /// What a daemon says of it.
  var reply: ControlReply {
    switch self {
    case .updated(let before, let now, let left): .updated(before: before, now: now, left: left)
    case .waits(let waiting): .waiting(waiting)
    }
  }
}

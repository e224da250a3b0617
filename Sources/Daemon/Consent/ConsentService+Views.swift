// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
internal import Store
internal import Volume

// What counts reaches the views of apps that run. Where several users are concerned, all of their views
// change before what is under way in one of them is waited for, and none waits for another's: any user may
// hold a file that an app of theirs writes, or have a disk that does not answer.

extension ConsentService {
  /// Brings the views of all apps in line with what an administrator restricts, if that has changed or an
  /// app is new; false if none runs.
  func applyRestrictions(isNew: Bool) -> Bool {
    let hasChanged = answers.managed.hasChanged()
    let running = views.all()
    if hasChanged || isNew && answers.managed.restrictsAnything {
      // This thread is everybody's: it waits for nobody.
      begin(with: running).waitElsewhere { DaemonLog.noteUse(by: [$0]) }
    }
    return !running.isEmpty
  }

  /// Has views have what counts for each of them, and nothing else, and then does `body`, before what is
  /// under way is waited for.
  func bringInLine(_ running: [RunningView], _ body: () -> Void = {}) -> ControlFailure? {
    let pending = begin(with: running)
    body()
    DaemonLog.noteUse(by: pending.wait())
    return settle()
  }

  /// Brings all views of apps of a user's in line with what counts.
  func apply(_ chosen: [(app: InstalledApp, service: PrivacyService)], _ user: UInt32) {
    DaemonLog.noteUse(by: begin(with: chosen, user).wait())
  }

  /// The same of some apps that run, of whatever users; what is under way in what they lose is yet to be
  /// waited for.
  private func begin(with running: [RunningView]) -> PendingWithdrawal {
    var pending = PendingWithdrawal()
    for (user, views) in Dictionary(grouping: running, by: \.user) {
      // One for all views of an app.
      var known: Set<String> = []
      let chosen = views.flatMap { view in
        view.launch.services.filter {
          known.insert("\(view.launch.app.identifier.text) \($0.rawValue)").inserted
        }.map { (view.launch.app, $0) }
      }
      pending.add(begin(with: chosen, user))
    }
    return pending
  }

  private func begin(
    with chosen: [(app: InstalledApp, service: PrivacyService)], _ user: UInt32
  ) -> PendingWithdrawal {
    let chosen = chosen.filter(\.service.isAboutFiles)
    guard !chosen.isEmpty else { return PendingWithdrawal() }
    // Nobody waits for apps in that turn: those of other users wait for it.
    return turns.with(user) { volume.begin(chosen.flatMap { changes($0.app, user, $0.service) }) }
  }

  /// What becomes of each view of an app: what entitlements open may differ, since a user's own copy of an
  /// app may run beside everyone's.
  private func changes(_ app: InstalledApp, _ user: UInt32, _ service: PrivacyService) -> [ViewChange] {
    // Also of one whose process has ended, and whose view is still there.
    let running = views.all(of: app.identifier, user: user, ended: true)
    return running.compactMap { running in
      let launch = running.launch
      guard launch.services.contains(service) else { return nil }
      let (with, without) = (launch.places(with: service), launch.places(without: service))
      let isAllowed = isAuthorized(launch, user, service)
      return ViewChange(
        ofView: running.view.number, admitting: isAllowed ? with : without,
        withdrawing: isAllowed ? without : with)
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Apps
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
internal import TestSupport
internal import Testing

/// Between the two steps of an update, the bundle is another one than the registry says.
///
/// No alarm is given for that, and none is missed for it.
struct LaunchDuringUpdateTests {
  /// Tries something as soon as a bundle has changed.
  private final class Attempt: TreeObserver {
    private let body: @Sendable () -> AppFailure?
    private let failures = Mutex<[AppFailure?]>([])

    init(_ body: @escaping @Sendable () -> AppFailure?) { self.body = body }

    var found: [AppFailure?] { failures.withLock { $0 } }

    func changing(_ change: TreeChange, _ body: () throws(Errno) -> Void) throws(Errno) {
      try body()
      let failure = self.body()
      failures.withLock { $0.append(failure) }
    }
  }

  /// Tries to launch apps of a store for a user.
  private struct Launches: Sendable {
    let launcher: AppLauncher
    let store: Store
    let registry: Registry
    let user: UInt32

    func failure(_ app: InstalledApp) -> AppFailure? {
      do throws(AppFailure) {
        _ = try launcher.launch(app, for: user, registry) { () throws(StoreError) in
          try Containers(store, registry)
        }
        return nil
      } catch {
        return error
      }
    }
  }

  private let fixture: AppFixture
  private let launches: Launches

  init() throws {
    fixture = try AppFixture()
    launches = Launches(
      launcher: AppLauncher(fixture.store), store: fixture.store, registry: fixture.registry,
      user: fixture.account.uid)
  }

  private func tryToLaunch(_ app: InstalledApp) -> AppFailure? { launches.failure(app) }

  private func isRefused(_ failure: AppFailure?) -> Bool {
    if case .refused? = failure { true } else { false }
  }

  /// A user's own copy beside everyone's of the same identifier, of which one is manipulated.
  @Test(arguments: [false, true]) func appThatIsBeingUpdatedIsBusy(own: Bool) throws {
    let (domain, other) = own ? (fixture.users, fixture.everyones) : (fixture.everyones, fixture.users)
    try fixture.bundle()
    let (before, beside) = (try fixture.install(for: domain), try fixture.install(for: other))
    #expect(tryToLaunch(before) == nil && tryToLaunch(beside) == nil)
    try fixture.write("#!/bin/sh\necho evil\n", to: "store/tree/\(beside.path)/Contents/MacOS/editor")
    let attempts = Attempt { [launches] in launches.failure(before) }
    let besides = Attempt { [launches] in launches.failure(beside) }
    for (version, observer) in [("2", attempts), ("3", besides)] {
      try fixture.bundle { $0.version = version }
      let now = try fixture.update(for: domain, observer: observer)
      #expect(tryToLaunch(now) == nil)
    }
    let busy = AppFailure.busy(identifier: before.identifier.text).description
    #expect(!attempts.found.isEmpty && attempts.found.allSatisfy { $0?.description == busy })
    #expect(!besides.found.isEmpty && besides.found.allSatisfy(isRefused))
    // Whoever has found the app before is told the same; what nobody changes is manipulated.
    #expect(tryToLaunch(before)?.description == busy)
    #expect(isRefused(tryToLaunch(beside)))
    // One that a process was stopped at is no reason to wait.
    let stopped = try fixture.registry.begin(.update(beside, to: beside))
    #expect(tryToLaunch(beside)?.description == busy)
    fixture.registry.leave(stopped)
    #expect(isRefused(tryToLaunch(beside)))
  }
}

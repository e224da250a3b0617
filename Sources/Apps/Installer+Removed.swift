// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO
package import Policy
package import Store

/// Removed containers: those that there are, or that something was done with.
package struct RemovedReport: Codable, Equatable, Sendable {
  package var containers: [RemovedContainer] = []
  /// What their deletion has freed.
  package var freed = FreedSpace()
  /// What stays of them, and why.
  package var left: [LeftBehind] = []

  /// As many as a reply has room for.
  static let most = 500

  package init(left: [LeftBehind] = []) { self.left = left }
}

// Containers that were removed are their users'; root has to do with everybody's.

extension Installer {
  /// Those that can be restored, the latest first.
  package func removed(of user: UInt32?, by caller: CallerIdentity) throws(AppFailure) -> RemovedReport {
    var report = RemovedReport()
    report.containers = Array(try restorable(of: user, by: caller).prefix(RemovedReport.most))
    return report
  }

  /// Puts one back to where it was.
  package func restore(_ number: Int64, by caller: CallerIdentity) throws(AppFailure) -> RemovedReport {
    let removed = try find(number, by: caller)
    let (user, path) = (removed.container.user, removed.container.path)
    try recover(.command(of: user, about: RecoveryScope.home(in: path.utf8)))
    return try registered { () throws(StoreError) in
      try alone(for: user, in: "Users/\(try store.home(of: user))/") { () throws(StoreError) in
        _ = try containers.restore(removed)
        var report = RemovedReport()
        report.containers = [removed]
        return report
      }
    }
  }

  /// Deletes one, or all of a user, for good.
  package func deleteRemoved(
    _ number: Int64?, of user: UInt32?, by caller: CallerIdentity, rest: @escaping Pause = {}
  ) throws(AppFailure) -> RemovedReport {
    var chosen: [RemovedContainer] = []
    if let number {
      chosen.append(try find(number, by: caller))
    } else {
      chosen = try restorable(of: user, by: caller)
    }
    var report = RemovedReport()
    for removed in chosen {
      let deletion = try registered { () throws(StoreError) in try containers.delete(removed, rest: rest) }
      report.freed.add(deletion.freed)
      if report.containers.count < RemovedReport.most { report.containers.append(removed) }
      report.left += deletion.left.prefix(max(0, RemovedReport.most - report.left.count))
    }
    return report
  }

  /// Deletes what was removed from a home that is about to be removed, whoever it is noted for.
  package func deleteRemoved(inHome name: String, rest: @escaping Pause = {}) throws(AppFailure) {
    try registered { () throws(StoreError) in
      let homes = try RemovedHomes(store, registry)
      for removed in try registry.removedContainers() where homes.isFrom(name, removed) {
        _ = try containers.delete(removed, rest: rest)
      }
    }
  }

  /// Deletes those whose time is over, and goes on with those that others were stopped in.
  package func deleteOldRemoved(
    _ limit: RemovedLimit, _ scope: RecoveryScope = .store,
    begins: (_ user: UInt32) -> Bool = { _ in true }, rest: @escaping Pause = {}
  ) throws(AppFailure) -> RemovedReport {
    var report = RemovedReport()
    var failure: StoreError?
    let now = time()
    let outside = try registered { () throws(StoreError) in try registry.namesOfHomesElsewhere() }
    let homes = try registered { () throws(StoreError) in try RemovedHomes(store, registry) }
    // What waits for its home is deleted by root alone.
    func isOver(_ removed: RemovedContainer) -> Bool {
      limit.isOver(removed: removed.removed, now: now) && homes.isTheirs(removed)
    }
    for removed in try registered({ () throws(StoreError) in try registry.removedContainers() })
    where (removed.isBeingDeleted || isOver(removed))
      && scope.reaches(removed.container.path.utf8, outside: outside) && begins(removed.container.user)
    {
      // One that can't be deleted keeps none of the others.
      do throws(StoreError) {
        report.freed.add(try containers.delete(removed, rest: rest).freed)
        report.containers.append(removed)
      } catch {
        failure = failure ?? error
      }
    }
    if let failure { throw .store(failure) }
    return report
  }

  private func restorable(
    of user: UInt32?, by caller: CallerIdentity
  ) throws(AppFailure) -> [RemovedContainer] {
    let user = user ?? (caller.isPrivileged ? nil : caller.uid)
    guard caller.isPrivileged || user == caller.uid else {
      throw .notAllowed(doing: "look at what others have removed from", path: "\(treePath)/Users")
    }
    return try registered { () throws(StoreError) in
      try store.removedContainers(ownedBy: user, registry).filter { !$0.isBeingDeleted }
    }
  }

  /// What others have removed is as if it was not there.
  private func find(_ number: Int64, by caller: CallerIdentity) throws(AppFailure) -> RemovedContainer {
    guard let found = try restorable(of: nil, by: caller).first(where: { $0.number == number }) else {
      throw .store(.noRemovedContainer(number: number))
    }
    return found
  }
}

extension CallerIdentity {
  fileprivate var isPrivileged: Bool { uid == 0 || uid == ProcessID.user }
}

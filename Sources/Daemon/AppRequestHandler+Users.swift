// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Apps
internal import LinuxIO
internal import Policy
package import Store

extension AppRequestHandler {
  /// What came of forgetting a user.
  package struct Forgetting: Sendable {
    package let parts: ForgottenParts
    /// What was set aside, by paths below the store.
    package let aside: [LeftBehind]
  }

  /// Forgets what counts for a user who has no home: it must not count for the next holder of the number.
  ///
  /// Nobody may ask for that about themselves: with it goes what the log says of them, and of what root has
  /// decided.
  @discardableResult
  package func forget(
    _ former: FormerUser, by caller: CallerIdentity
  ) throws(ControlFailure) -> Forgetting {
    guard caller.uid == 0 || caller.uid == ProcessID.user else {
      throw ControlFailure("only root may do this", .EPERM)
    }
    do throws(StoreError) { return try forgetNow(former, by: caller) } catch { throw ControlFailure(error) }
  }

  /// The same for somebody who may do it.
  ///
  /// What was thrown away is in nobody's reach afterwards. With a home that was removed it is deleted, by
  /// ``Store/removeLeft()``.
  package func forgetNow(
    _ former: FormerUser, by caller: CallerIdentity
  ) throws(StoreError) -> Forgetting {
    let user = former.user
    // What was removed from homes of others is theirs, and stays.
    try store.followRemoved(of: user, in: registry)
    if let home = former.removedHome { try store.forget(home: home, of: user, in: registry) }
    let parts = try store.parts(toForgetOf: former, in: registry)
    // What the registry has goes last: by that whoever goes on after a stop knows that there is more.
    if parts.contains(.log) { try forgetLog(user) }
    var aside: [LeftBehind] = []
    if parts.contains(.trash) {
      if former.successor == nil {
        try containers().takeTrash(of: user)
      } else {
        aside = try containers().setAside(of: user)
      }
    }
    if parts.contains(.decisions) {
      try VolumeNotes(of: store).removeAll(of: user)
      note(try registry.forget(user: user), of: user, by: caller)
    }
    return Forgetting(parts: parts, aside: aside)
  }

  /// Has what lies in a home be noted for its owner, before the home is removed, whose number may have
  /// changed; or deletes what was removed from it.
  package func prepareRemoval(
    ofHome name: String, deletingRemoved: Bool, by caller: CallerIdentity, isCancelled: @escaping () -> Bool
  ) throws(ControlFailure) {
    if caller.uid != 0, caller.uid != ProcessID.user { throw ControlFailure("only root may do this", .EPERM) }
    guard deletingRemoved else {
      try explaining { () throws(AppFailure) in try followNumbers(inHome: name) }
      do throws(StoreError) { return try store.requireFollowed(home: name, in: registry) } catch {
        throw ControlFailure(error)
      }
    }
    Pace.giveWay()
    let pace = Pace(most: .max)
    try explaining { () throws(AppFailure) in
      try installer().deleteRemoved(inHome: name) { () throws(Errno) in try pace.rest(orEndIf: isCancelled) }
    }
  }

  /// Forgets a home that was ejected, and will not come back.
  package func forgetEjectedHome(
    _ name: String, from source: String?, by caller: CallerIdentity
  ) throws(ControlFailure) {
    if caller.uid != 0, caller.uid != ProcessID.user { throw ControlFailure("only root may do this", .EPERM) }
    do throws(StoreError) {
      try store.forgetEjectedHome(name, from: source, in: registry)
    } catch {
      throw ControlFailure(error)
    }
  }

  /// In the log of whoever has it done: that of the user is the next holder's.
  private func note(_ forgotten: Registry.Forgotten, of user: UInt32, by caller: CallerIdentity) {
    log([
      LogEntry(
        now: .consentReset, user: caller.uid,
        detail: "uid \(user) has no home any more: \(forgotten.words)")
    ])
  }
}

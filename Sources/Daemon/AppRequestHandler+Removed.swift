// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Apps
internal import LinuxIO
internal import Policy
internal import Store

// Containers that were removed, and can be restored for some days.

extension AppRequestHandler {
  package func removed(of user: UInt32?, by caller: CallerIdentity) throws(ControlFailure) -> RemovedReport {
    try explaining { () throws(AppFailure) in try installer().removed(of: user, by: caller) }
  }

  package func restoreRemoved(
    _ number: Int64, by caller: CallerIdentity
  ) throws(ControlFailure) -> RemovedReport {
    try explaining { () throws(AppFailure) in try installer().restore(number, by: caller) }
  }

  package func deleteRemoved(
    _ number: Int64?, of user: UInt32?, by caller: CallerIdentity, isCancelled: @escaping () -> Bool
  ) throws(ControlFailure) -> RemovedReport {
    Pace.giveWay()
    let pace = Pace(most: .max)
    return try explaining { () throws(AppFailure) in
      // What is left then, the thread for purges deletes.
      try installer().deleteRemoved(number, of: user, by: caller) { () throws(Errno) in
        try pace.rest(orEndIf: isCancelled)
      }
    }
  }

  /// Those whose time is over; where nobody has asked for it.
  func deleteOldRemoved(
    _ limit: RemovedLimit, _ scope: RecoveryScope, begins: (_ user: UInt32) -> Bool,
    rest: @escaping Pause
  ) throws(ControlFailure) {
    _ = try explaining { () throws(AppFailure) in
      try installer().deleteOldRemoved(limit, scope, begins: begins, rest: rest)
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Apps
internal import LinuxIO
internal import Policy
internal import Store

extension AppRequestHandler {
  /// Forgets what counts for a user who has no home: it must not count for the next holder of the number.
  ///
  /// While there is a home of theirs, nothing is forgotten.
  package func forget(_ user: UInt32, by caller: CallerIdentity) throws(ControlFailure) {
    guard caller.uid == 0 || caller.uid == ProcessID.user || caller.uid == user else {
      throw ControlFailure("only root may do this for another user", .EPERM)
    }
    do throws(StoreError) {
      guard let forgotten = try store.forget(user, in: registry), !forgotten.isNothing else {
        return
      }
      let what = [
        "\(forgotten.consents) consents", "\(forgotten.grants) grants",
        "\(forgotten.openers) apps chosen for documents", "\(forgotten.volumes) volumes",
      ].joined(separator: ", ")
      log([
        LogEntry(
          now: .consentReset, user: user, app: nil, by: caller.uid, detail: "no home any more: \(what)")
      ])
    } catch {
      throw ControlFailure(error)
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import LinuxIO
package import Policy
internal import Store

/// A copy that lies beside the container of an app and is to go into its Inbox, which only the daemon can do.
package struct Delivery: Codable, Equatable, Sendable {
  /// What it is called there.
  package let copy: String
  /// What it is to be called in the Inbox, if that name is free.
  package let name: String
  /// The home and the app whose container it is.
  package let home: String
  package let identifier: AppIdentifier
  /// Whose that app was when the copy was made; nil where a command of an earlier version does not say.
  package let team: BackupTeam?
}

/// A copy that was made, and the directory that it is, if it is one.
package struct PreparedDelivery {
  package let delivery: Delivery
  fileprivate let held: SharedFD?
}

extension AppContainer {
  /// Makes a copy of a file, or of a package of files, that is ready to be delivered.
  ///
  /// Always a copy: whoever has the original open has nothing of what is delivered.
  package func prepareDelivery(of object: FD, named name: String) throws(DataFailure) -> PreparedDelivery {
    guard let identifier = AppIdentifier(self.name), let home = Homes.name(in: location) else {
      throw .failed(doing: "deliver to", path: path, errno: .EINVAL)
    }
    try refuseReadOnly()
    let workshop = self.workshop(Workshop.deliveryPrefix)
    try clear(workshop)
    var rules = DataCopy.Rules(from: .package, to: access)
    rules.owner = owner
    rules.emptiness = .refused
    rules.keepsSecurity = false
    rules.marks = [(Quarantine.attribute, Quarantine.ofDelivery())]
    let copy = DataCopy(rules)
    let temporary = workshop.newName()
    do throws(TreeCopyFailure) {
      try copy.copy(object, named: name, to: temporary, in: containers.fd)
      try copy.finish()
    } catch {
      discard(temporary, held: copy.made)
      throw .notCopied(from: name, error)
    }
    do throws(DataFailure) {
      try synchronize()
    } catch {
      discard(temporary, held: copy.made)
      throw error
    }
    return PreparedDelivery(
      delivery: Delivery(copy: temporary, name: name, home: home, identifier: identifier, team: team),
      held: copy.made)
  }

  /// Takes a copy away that was not delivered.
  package func discard(_ prepared: PreparedDelivery) {
    discard(prepared.delivery.copy, held: prepared.held)
  }
}

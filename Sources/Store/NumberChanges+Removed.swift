// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

// What was removed from a home lies beside the tree, and is the home's owner's all the same: it follows the
// home that its path names, whatever becomes of the apps and containers that are there.

extension Store {
  /// The owner of the home that a path below the root of the tree leads into; nil where nobody knows.
  ///
  /// No home elsewhere is looked at.
  package func owner(ofHomeIn path: String, _ registry: Registry) throws(StoreError) -> UInt32? {
    guard let home = Homes.name(in: path) else { return nil }
    if liesElsewhere(home) { return try registry.ownersOfHomesElsewhere()[Array(home.utf8)] }
    guard let status = try? tree.status(at: "Users/\(home)"), status.isDirectory else { return nil }
    return status.st_uid
  }

  /// Whether nothing says that a removed container is somebody else's than the user's for whom it is noted.
  package func isOfItsHome(_ removed: RemovedContainer, _ registry: Registry) throws(StoreError) -> Bool {
    guard let owner = try owner(ofHomeOf: removed, registry) else { return true }
    return owner == removed.container.user
  }

  /// Notes removed containers for the owners of the homes that their paths name, and gives them what is in
  /// them; returns the numbers that have lost something by that.
  ///
  /// Those of one user, or in one home, if that is given. It can be stopped, and done again.
  @discardableResult
  package func followRemoved(
    of user: UInt32? = nil, inHome only: String? = nil, in registry: Registry
  ) throws(StoreError) -> Set<UInt32> {
    // A user's own store has one user.
    guard description.mode == .system else { return [] }
    var owners: [ExactText: UInt32?] = [:]
    var former: Set<UInt32> = []
    for removed in try registry.removedContainers(of: user) {
      let container = removed.container
      guard let home = Homes.name(in: container.path) else { continue }
      // Disks and servers, which may not answer, are looked at by those alone who have one of them there.
      guard only.map({ home.hasSameBytes(as: $0) }) ?? !liesElsewhere(home) else { continue }
      let known = owners[ExactText(home)]
      let owner = if let known { known } else { try owner(ofHomeOf: removed, registry) }
      owners.updateValue(owner, forKey: ExactText(home))
      guard let owner, owner != container.user else { continue }
      handOver(removed, in: home, to: owner)
      try registry.give(removed, to: owner)
      former.insert(container.user)
    }
    return former
  }

  /// Nil where that says nothing: a directory of root's is where a disk is mounted that is not there now, and
  /// what was removed may be of a home of that name that was ejected.
  private func owner(
    ofHomeOf removed: RemovedContainer, _ registry: Registry
  ) throws(StoreError) -> UInt32? {
    let path = removed.container.path
    guard let owner = try owner(ofHomeIn: path, registry), owner != 0 else { return nil }
    return try registry.isInEjectedHome(path) ? nil : owner
  }

  /// Gives what a removed container's former owner has in it to the owner of the home: whoever has given the
  /// home away did not get to it.
  ///
  /// What can't be given stays as it is, and root finds it.
  private func handOver(_ removed: RemovedContainer, in home: String, to owner: UInt32) {
    guard let directory = openDirectory(of: removed), let before = try? directory.fd.status(),
      before.st_uid == removed.container.user, let status = try? tree.status(at: "Users/\(home)")
    else { return }
    let account = Account(name: home, uid: owner, gid: status.st_gid, home: "")
    let handover = Handover(from: before, to: account, sealed: [])
    var adoption = Adoption(previous: before.st_uid)
    do throws(Errno) {
      try handover.carryOut(in: directory.fd, HomeSurvey(of: directory.fd, handover), &adoption)
      // The last, so that one that was interrupted is known by its owner.
      try directory.fd.changeOwner(uid: owner, gid: status.st_gid)
    } catch {}
  }
}

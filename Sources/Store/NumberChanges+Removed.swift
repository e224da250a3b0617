// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO
internal import Policy

// What was removed from a home lies beside the tree, and is the home's owner's all the same. It follows the
// home as an object, whatever that is called by now: the next home of the name is somebody else's.
//
// Where the home is not there, what was removed from it waits: nobody but root sees it, nor restores, deletes
// or counts it. Of what earlier versions have removed, the home is not noted: that is certain only where name
// and number are those of before, or where an account is known to have changed its number.

/// The homes that there are, by what they are.
package struct RemovedHomes {
  struct Home {
    let name: String
    let owner: UInt32
    let object: ObjectIdentity
    /// Where it lies, if that is elsewhere.
    var volume: VolumeRecord?

    /// Whether it is the one of all homes in one place that an earlier version has noted together.
    ///
    /// A volume never gets another name, and no other one of its name is there beside it. What was removed
    /// before it was added may be another one's, who had the name and the place.
    func isMeant(by removed: RemovedContainer) -> Bool {
      guard let volume, removed.home == ObjectIdentity(ofAllHomesAt: volume.path) else { return false }
      return removed.removed > volume.added
        && Homes.name(in: removed.container.path)?.hasSameBytes(as: name) == true
    }
  }

  private let homes: [Home]
  private let ejected: [[UInt8]]
  /// A user's own store has one user.
  private let isRootless: Bool

  /// No disk and no server is looked at.
  ///
  /// A home elsewhere counts while it is a part of the tree: whose it was when it was added says nothing
  /// while it is away, since numbers may have changed. Only a daemon knows that; others count them all by
  /// `countingAway`, and say what is noted.
  package init(
    _ store: Store, _ registry: Registry, countingAway: Bool = false
  ) throws(StoreError) {
    isRootless = store.description.mode != .system
    ejected = try registry.ejectedHomes().map(\.name)
    let owners = try registry.ownersOfHomesElsewhere()
    var homes: [Home] = []
    for volume in try registry.volumes() where volume.place == .users {
      guard let owner = owners[volume.name],
        countingAway || store.homeElsewhere(named: volume.name)?.target?.owner == owner
      else { continue }
      let name = String(decoding: volume.name, as: UTF8.self)
      let object = ObjectIdentity(ofHome: volume, of: owner)
      homes.append(Home(name: name, owner: owner, object: object, volume: volume))
    }
    for home in try Homes(tree: store.tree, path: store.path + "/tree", mode: store.description.mode).owners()
    where home.owner != nil {
      guard let found = try? store.homeInStore(home.name) else { continue }
      homes.append(Home(name: home.name, owner: found.owner, object: found.object))
    }
    self.homes = homes
  }

  /// The home that a container was removed from; nil where it waits for one that is not there, or that
  /// nobody knows.
  ///
  /// A directory of root's is where a disk is mounted that is not there now.
  func home(of removed: RemovedContainer) -> Home? {
    let user = removed.container.user
    let noted = removed.home.map { object in home(object) ?? homes.first { $0.isMeant(by: removed) } }
    guard let home = noted ?? named(removed, of: user), home.owner != 0 || user == 0 else { return nil }
    return home
  }

  /// The home whose name the path of a removed container has, if it is that user's and no other one of the
  /// name may come back.
  func named(_ removed: RemovedContainer, of user: UInt32) -> Home? {
    guard let name = Homes.name(in: removed.container.path),
      !ejected.contains(where: { $0.elementsEqual(name.utf8) })
    else { return nil }
    return homes.first { $0.owner == user && $0.name.hasSameBytes(as: name) }
  }

  private func home(_ object: ObjectIdentity) -> Home? { homes.first { $0.object == object } }

  /// Whether a removed container is the user's for whom it is noted.
  package func isTheirs(_ removed: RemovedContainer) -> Bool {
    isRootless || home(of: removed)?.owner == removed.container.user
  }

  /// Whether it is somebody else's by now, for whom it will be noted.
  func isOthers(_ removed: RemovedContainer) -> Bool {
    guard !isRootless, let home = home(of: removed) else { return false }
    return home.owner != removed.container.user
  }

  /// Whether a container was removed from the home that has a name now.
  package func isFrom(_ name: String, _ removed: RemovedContainer) -> Bool {
    home(of: removed)?.name.hasSameBytes(as: name) == true
  }
}

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

  /// What the home is that a path below the root of the tree leads into; nil where nobody knows.
  func object(ofHomeIn path: String, _ registry: Registry) throws(StoreError) -> ObjectIdentity? {
    guard let home = Homes.name(in: path) else { return nil }
    let volumes = try registry.volumes()
    if let volume = volumes.first(where: { $0.place == .users && $0.name.elementsEqual(home.utf8) }) {
      return try registry.object(ofHome: volume)
    }
    return try? homeInStore(home).object
  }

  fileprivate func homeInStore(_ name: String) throws(Errno) -> (owner: UInt32, object: ObjectIdentity) {
    let users = try tree.openDirectory("Users")
    let home = try users.fd.child(name)
    let status = try home.fd.status()
    guard status.isDirectory else { throw .ENOTDIR }
    return (status.st_uid, ObjectIdentity(status, of: home.fd))
  }

  /// The removed containers that are a user's, without those that wait; without a user all of them.
  package func removedContainers(
    ownedBy user: UInt32?, _ registry: Registry?
  ) throws(StoreError) -> [RemovedContainer] {
    guard let registry else { return [] }
    let noted = try registry.removedContainers(of: user)
    if user == nil || noted.isEmpty { return noted }
    return try noted.filter(RemovedHomes(self, registry).isTheirs)
  }

  /// Notes removed containers for the owners of the homes that they are from; returns the numbers that have
  /// lost something by that.
  ///
  /// Those of one user, or from one home, if that is given. It can be stopped, and done again. What is in
  /// them is given along when they are restored or deleted: nobody waits here for a walk.
  @discardableResult
  package func followRemoved(
    of user: UInt32? = nil, inHome only: String? = nil, in registry: Registry,
    _ accounts: LocalAccounts = .users
  ) throws(StoreError) -> Set<UInt32> {
    guard description.mode == .system else { return [] }
    let all = try registry.removedContainers(of: user)
    if all.isEmpty { return [] }
    let homes = try RemovedHomes(self, registry)
    var former: Set<UInt32> = []
    for removed in all {
      let user = removed.container.user
      var home = homes.home(of: removed)
      if home == nil, removed.home == nil, let move = try registry.changedHolder(of: user, accounts),
        let found = homes.named(removed, of: move.number), found.owner != 0, found.volume == nil,
        found.name.hasSameBytes(as: move.name)
      {
        home = found
      }
      guard let home, only.map({ home.name.hasSameBytes(as: $0) }) ?? true else { continue }
      if home.owner == user, removed.home == home.object { continue }
      try registry.note(home.object, of: removed, for: home.owner)
      if home.owner != user { former.insert(user) }
    }
    return former
  }
}

extension Containers {
  /// Gives what a removed container's former owner has in it to the owner of the home: whoever has given the
  /// home away did not get to it.
  ///
  /// What can't be given stays as it is, and root finds it.
  func handOver(_ removed: RemovedContainer, _ directory: FD) throws(StoreError) {
    guard let before = try? directory.status(), before.st_uid != removed.container.user, before.st_uid != 0,
      let home = try RemovedHomes(store, registry).home(of: removed),
      home.owner == removed.container.user, let status = try? tree.fd.status(at: "Users/\(home.name)")
    else { return }
    let account = Account(name: home.name, uid: home.owner, gid: status.st_gid, home: "")
    let handover = Handover(from: before, to: account, sealed: [])
    var adoption = Adoption(previous: before.st_uid)
    do throws(Errno) {
      try handover.carryOut(in: directory, HomeSurvey(of: directory, handover), &adoption)
      // The last, so that one that was interrupted is known by its owner.
      try directory.changeOwner(uid: home.owner, gid: status.st_gid)
    } catch {}
  }
}

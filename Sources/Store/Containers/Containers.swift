// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO
package import Policy

/// The containers in the homes of a store.
///
/// A container is noted in the registry, made where nobody sees it, and put in its place whole. Stopped at
/// any moment, what is there is whole, and making it once more gives what is missing.
package final class Containers: Sendable {
  let tree: OwnedFD
  /// Where the tree is, for messages.
  let path: String
  let registry: Registry
  let access: SecurityAccess
  let metadata: Metadata
  private let workshopDirectory: OwnedFD
  let workshop: Workshop
  let store: Store
  /// The home whose containers alone these are, if it lies elsewhere.
  let elsewhere: HomeElsewhere?

  /// `visibly` is told of every change of a place that others can see.
  package convenience init(
    _ store: Store, _ registry: Registry, visibly: @escaping VisibleChange = changeUnseen
  ) throws(StoreError) {
    try self.init(store, registry, nil, try store.openStaging(), visibly)
  }

  private init(
    _ store: Store, _ registry: Registry, _ elsewhere: HomeElsewhere?, _ staging: consuming OwnedFD,
    _ visibly: @escaping VisibleChange
  ) throws(StoreError) {
    self.store = store
    self.elsewhere = elsewhere
    path = store.path + "/tree"
    tree = try explaining("open", path) { () throws(Errno) in try store.tree.duplicated() }
    self.registry = registry
    metadata = Metadata(isSystem: store.description.mode == .system)
    access = .store(metadata)
    workshopDirectory = staging
    workshop = Workshop(directory: workshopDirectory.fd, prefix: "container-", visibly: visibly)
    let tree = tree.fd
    try registry.note(
      tree: explaining("examine", path) { () throws(Errno) in try ObjectIdentity(tree.status(), of: tree) })
  }

  /// The same containers for what is done in one home, whose filesystem has a workshop of its own if it is
  /// not the store's; nil while the home is away, was ejected, or is not there for another reason.
  func forHome(of path: String) throws(StoreError) -> Containers? {
    guard let elsewhere = store.homeElsewhere(of: path) else { return hasHome(of: path) ? self : nil }
    guard let staging = try elsewhere.openStaging() else { return nil }
    let own = try Containers(store, registry, elsewhere, staging, workshop.visibly)
    try own.clearWorkshop()
    return own
  }

  func forHomeThatIsThere(_ path: String) throws(StoreError) -> Containers {
    if let own = try forHome(of: path) { return own }
    // Where there is no home at all, whoever opens it says so.
    guard store.homeElsewhere(of: path) == nil else { throw .homeIsAway(path: "\(self.path)/\(path)") }
    return self
  }

  /// Whether the home is there that a path leads into; where that can't be told, it is not.
  private func hasHome(of path: String) -> Bool {
    guard let home = Homes.name(in: path) else { return true }
    return (try? tree.fd.status(at: "Users/\(home)"))?.isDirectory == true
  }

  /// What an app needs of containers in a home: its own, those of its groups, those in iCloud.
  ///
  /// What is there stays as it is, save that what is missing of it is made.
  package func make(
    for app: InstalledApp, home: String, ifInstalled: Bool = false
  ) throws(StoreError) -> [ContainerRecord] {
    try clearWorkshop()
    let needed: [(ContainerKind, AppIdentifier)] =
      [(.data, app.identifier)] + app.groups.map { (.group, $0) } + app.clouds.map { (.cloud, $0) }
    var made: [ContainerRecord] = []
    for (kind, identifier) in needed {
      made.append(try make(kind, identifier, for: app, home: home, ifInstalled: ifInstalled))
    }
    return made
  }

  /// Makes one container of an app, or completes it.
  ///
  /// One that another team's apps have left, or share, is not for this one. Where nothing else keeps the app
  /// from being uninstalled meanwhile, `ifInstalled` has that asked again.
  package func make(
    _ kind: ContainerKind, _ identifier: AppIdentifier, for app: InstalledApp, home name: String,
    ifInstalled: Bool = false
  ) throws(StoreError) -> ContainerRecord {
    try forHomeThatIsThere("Users/\(name)/").makeHere(
      kind, identifier, for: app, home: name, ifInstalled: ifInstalled)
  }

  private func makeHere(
    _ kind: ContainerKind, _ identifier: AppIdentifier, for app: InstalledApp, home name: String,
    ifInstalled: Bool
  ) throws(StoreError) -> ContainerRecord {
    let home = try openHome(name)
    let owner = Owner(
      try explaining("examine", "\(path)/Users/\(name)") { () throws(Errno) in try home.fd.status() })
    let place = "Users/\(name)/\(ContainerLayout.path(of: identifier, kind))"
    let container = ContainerLayout.name(of: identifier, kind)
    let parent = try directory(of: kind, in: home.fd, owner, "\(path)/Users/\(name)")
    try refuseOtherSpelling(of: container, at: place, in: parent.fd)
    let new = {
      ContainerRecord(
        uuid: UUIDText.random(), kind: kind, identifier: identifier, user: owner.uid, path: place,
        team: app.signer)
    }
    let required = ifInstalled ? app : nil
    var record = try note(new(), inHome: name, for: required)
    if record.isMarkedForRemoval {
      // An app that is installed again gets nothing of what the one before it has left.
      let stays = try remove(record)
      record = try registry.note(new(), for: required)
      // It would be removed while the app uses it, as soon as nothing stands in the way any more.
      if record.isMarkedForRemoval {
        throw .containerStays(path: "\(path)/\(place)", reason: stays?.reason ?? "it is in use")
      }
    }
    try claim(record, for: app.signer, isThere: parent.fd.has(container))
    try checkNotedTeam(of: record, named: container, in: parent.fd, for: app.signer)
    record.team = app.signer
    // Only now: an app of another team, which does not get it, must not end that it is kept.
    if record.keeper != nil {
      try registry.noteUse(of: record)
      record.keeper = nil
    }
    let identity = try put(
      record, named: container, in: parent.fd, owner, kind == .data ? app : nil, for: app.signer)
    return try note(identity, of: record)
  }

  /// Notes a container that is about to be made; if its user has as many as there can be, those are forgotten
  /// first that the user has removed.
  private func note(
    _ container: ContainerRecord, inHome name: String, for app: InstalledApp?
  ) throws(StoreError) -> ContainerRecord {
    do throws(StoreError) {
      return try registry.note(container, for: app)
    } catch {
      guard case .tooManyContainers = error, try forgetRemoved(of: container.user, inHome: name) else {
        throw error
      }
      return try registry.note(container, for: app)
    }
  }

  /// Forgets those containers of a user that are not there any more, in the home that the user has; whether
  /// there was one.
  package func forgetMissing(of user: UInt32) throws(StoreError) -> Bool {
    guard let home = try? store.home(of: user) else { return false }
    return try forgetRemoved(of: user, inHome: home)
  }

  /// Forgets those containers of a home that are not there any more; whether there was one.
  ///
  /// One that is just being made is not there either, and its directory is not noted yet.
  private func forgetRemoved(of user: UInt32, inHome name: String) throws(StoreError) -> Bool {
    var isAny = false
    let prefix = "Users/\(name)/"
    // They may be in another home of that name.
    if try registry.isInEjectedHome(prefix + ".") { return false }
    for record in try registry.containers(user: user)
    where record.identity != nil && record.path.utf8.starts(with: prefix.utf8) {
      do throws(Errno) {
        _ = try tree.fd.status(at: record.path)
      } catch .ENOENT {
        try registry.forget(record)
        isAny = true
      } catch {}
    }
    return isAny
  }

  /// Throws if there is a container of that name in another spelling, in a store that ignores case.
  ///
  /// An app's view has a container in all spellings of its name, so it would have that one as well, whosever
  /// it is.
  func refuseOtherSpelling(of name: String, at place: String, in parent: FD) throws(StoreError) {
    do throws(Errno) { try store.refuseOtherSpelling(of: name, in: parent) } catch .EEXIST {
      throw .containerOfOtherSpelling(path: "\(path)/\(place)")
    } catch {
      throw StoreError(error, doing: "list the directory of", path: "\(path)/\(place)")
    }
  }

  /// Throws unless a container is a team's, as the registry has it; one that nobody has yet, that is not
  /// there any more, or that is the same team's under a root that was replaced, becomes it.
  private func claim(_ record: ContainerRecord, for team: Team, isThere: Bool) throws(StoreError) {
    if record.team == team { return }
    if let other = record.team, isThere, try !registry.isSuccessor(team, of: other) {
      throw .container(record, at: "\(path)/\(record.path)", isNotFor: team, but: other)
    }
    try registry.note(team, of: record)
  }

  /// Notes which directory it is that a container has now.
  package func noteIdentity(
    of record: ContainerRecord, named name: String, in parent: FD
  ) throws(StoreError) -> ContainerRecord {
    let identity = try explaining("examine", "\(path)/\(record.path)") { () throws(Errno) in
      try ObjectIdentity(of: name, in: parent)
    }
    return try note(identity, of: record)
  }

  /// Notes that a container is that directory from now on.
  package func note(
    _ identity: ObjectIdentity, of record: ContainerRecord
  ) throws(StoreError) -> ContainerRecord {
    if record.identity == identity { return record }
    try registry.note(identity, of: record)
    var noted = record
    noted.identity = identity
    return noted
  }

  /// Opens the home that a container is to be in.
  func openHome(_ name: String) throws(StoreError) -> OwnedFD {
    try Homes.checkName(name)
    do throws(Errno) {
      let home = try tree.fd.openDirectory(at: "Users/\(name)")
      // Its server may say by now that it is another's.
      let owner = try home.fd.status().st_uid
      guard elsewhere?.target.map({ $0.owner == owner }) ?? true else { throw .ENOTDIR }
      return home
    } catch .ENOENT, .ENOTDIR, .ELOOP {
      let place = "\(path)/Users/\(name)"
      throw elsewhere == nil ? .noHome(path: place) : .homeIsAway(path: place)
    } catch {
      throw StoreError(error, doing: "open the home", path: "\(path)/Users/\(name)")
    }
  }

  /// Opens the directory in which a home has its containers of a kind; makes it where it is missing.
  func directory(
    of kind: ContainerKind, in home: FD, _ owner: Owner, _ homePath: String
  ) throws(StoreError) -> OwnedFD {
    var directory = try explaining("open", homePath) { () throws(Errno) in try home.duplicated() }
    var at = homePath
    for name in ContainerLayout.directory(of: kind).parts(between: "/").map(String.init) {
      at += "/" + name
      try requireDirectory(name, in: directory.fd, owner, at)
      directory = try explaining("open", at) { () throws(Errno) in
        try directory.fd.openDirectory(name)
      }
    }
    return directory
  }

  /// Makes sure that a directory is there and its owner's.
  func requireDirectory(_ name: String, in parent: FD, _ owner: Owner, _ path: String) throws(StoreError) {
    let found = try explaining("create", path) { () throws(Errno) in try status(of: name, in: parent) }
    guard let status = found else {
      try requireNoFlags(against: .addSubdirectory, above: path, on: parent)
      do throws(Errno) {
        return try workshop.put(name, in: parent) { (workshop, name) throws(Errno) in
          try Self.makeDirectory(name, in: workshop, owner)
        }
      } catch .EEXIST {
        // Someone has just made it.
        return try requireDirectory(name, in: parent, owner, path)
      } catch {
        throw StoreError(error, doing: "create", path: path)
      }
    }
    guard status.isDirectory else { throw .noContainer(path: path, what: "it is not a directory") }
    guard status.st_uid == owner.uid else {
      throw .noContainer(path: path, what: "it belongs to uid \(status.st_uid), not to \(owner.uid)")
    }
  }

  static func makeDirectory(_ name: some NameText, in parent: FD, _ owner: Owner) throws(Errno) {
    try parent.makeDirectory(name, mode: ContainerLayout.mode)
    let made = try parent.child(name)
    try made.fd.changeOwner(uid: owner.uid, gid: owner.gid)
    try made.fd.changeMode(ContainerLayout.mode)
  }

  /// Removes what a process left behind that was stopped.
  package func clearWorkshop() throws(StoreError) {
    try explaining("clear", path) { () throws(Errno) in
      try workshop.clear { [access] (directory, name) throws(Errno) in
        try access.removeTree(name, in: directory)
      }
    }
  }

  /// Who a container belongs to.
  struct Owner {
    let uid: UInt32
    let gid: UInt32

    init(_ status: FileStatus) {
      uid = status.st_uid
      gid = status.st_gid
    }
  }
}

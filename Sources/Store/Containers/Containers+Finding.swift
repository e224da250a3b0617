// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import LinuxIO
package import Policy

/// How a container is found that an app needs.
package enum FoundContainer {
  case whole(ContainerRecord)
  /// It is the app's, but its directory, or something of what it consists of, is missing.
  case incomplete(isThere: Bool)
  /// It is not the app's: another team's, kept for the next app, about to be removed, or no directory.
  case withheld
}

extension Store {
  /// The container that an app, a group or iCloud has in a user's home, if it is there and nothing of it is
  /// missing; not one that is kept, since its app must first take it over (``Containers/make(for:home:)``).
  ///
  /// Looking changes nothing, so whoever finds one need not make it.
  package func wholeContainer(
    _ kind: ContainerKind, _ identifier: AppIdentifier, of user: UInt32, home: String, for app: InstalledApp,
    _ registry: Registry
  ) throws(StoreError) -> ContainerRecord? {
    guard
      case .whole(let record) = try findContainer(kind, identifier, of: user, home: home, for: app, registry)
    else { return nil }
    return record
  }

  /// The same, and what is there instead if it is not whole.
  package func findContainer(
    _ kind: ContainerKind, _ identifier: AppIdentifier, of user: UInt32, home: String, for app: InstalledApp,
    _ registry: Registry
  ) throws(StoreError) -> FoundContainer {
    let path = "Users/\(home)/\(ContainerLayout.path(of: identifier, kind))"
    let noted = try registry.containers(
      kind: kind, identifier: identifier, user: user, isMarkedForRemoval: false)
    // One user has one of each in the registry, which may be in another home of theirs by now.
    let record = noted.first { $0.path.hasSameBytes(as: path) } ?? noted.first
    guard let record, record.team == app.signer, record.keeper == nil else { return .withheld }
    let isHere = record.path.hasSameBytes(as: path)
    guard let container = try? tree.openDirectory(at: path) else {
      return isHere && isMissing(path) ? .incomplete(isThere: false) : .withheld
    }
    // What is noted on the object counts more than what is noted of its name.
    let team = Metadata(isSystem: description.mode == .system).note(of: container.fd)?.team
    if let team, team != app.signer, try !registry.isSuccessor(app.signer, of: team) { return .withheld }
    guard isHere else { return team == nil ? .withheld : .incomplete(isThere: true) }
    let isWhole = record.identity != nil && isWhole(container.fd, record, app)
    return isWhole ? .whole(record) : .incomplete(isThere: true)
  }

  private func isMissing(_ path: String) -> Bool {
    do throws(Errno) {
      _ = try tree.status(at: path)
      return false
    } catch {
      return error == .ENOENT
    }
  }

  private func isWhole(_ container: FD, _ record: ContainerRecord, _ app: InstalledApp) -> Bool {
    let kind = record.kind
    func status(_ path: String) -> FileStatus? { try? container.status(at: path) }
    for directory in ContainerLayout.directories(of: kind) where status(directory)?.isDirectory != true {
      return false
    }
    if kind.contentClass != nil, status(ContainerLayout.metadataName)?.isRegular != true { return false }
    guard kind == .data else { return true }
    // It may lead to another copy of the app, which its user had.
    guard let data = try? container.openDirectory(ContainerLayout.dataName),
      let target = try? data.fd.linkTarget(of: app.bundleName)
    else { return false }
    return target.elementsEqual(Containers.target(of: app, record).utf8)
  }

  /// Whether a home is there, and is a user's; one elsewhere is theirs for whom root has added it, whatever
  /// its disk or server says by now.
  package func isHome(_ name: String, of user: UInt32) -> Bool {
    guard (try? Homes.checkName(name)) != nil else { return false }
    if let elsewhere = homeElsewhere(of: "Users/\(name)") { return elsewhere.target?.owner == user }
    guard let status = try? tree.status(at: "Users/\(name)") else { return false }
    return status.isDirectory && status.st_uid == user
  }

  /// Whose homes the store's own tree has.
  package var homeOwners: Set<UInt32> {
    let homes = try? Homes(tree: tree, path: path + "/tree", mode: description.mode).owners()
    return Set((homes ?? []).compactMap(\.owner)).subtracting([0])
  }

  /// The name of a user's home.
  package func home(of user: UInt32) throws(StoreError) -> String {
    let account = Account.numbered(user)?.name
    if let account, isHome(account, of: user) { return account }
    if let account, liesElsewhere(account) { throw .homeIsAway(path: "\(path)/tree/Users/\(account)") }
    let homes = try Homes(tree: tree, path: path + "/tree", mode: description.mode)
    guard let home = try homes.name(ofHomeOf: user) else {
      throw .noHome(path: "\(path)/tree/Users/\(account ?? "of uid \(user)")")
    }
    return home
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import LinuxIO
package import Policy

extension Store {
  /// The container that an app, a group or iCloud has in a user's home, if it is there and nothing of it is
  /// missing; not one that is kept, since its app must first take it over (``Containers/make(for:home:)``).
  ///
  /// Looking changes nothing, so whoever finds one need not make it.
  package func wholeContainer(
    _ kind: ContainerKind, _ identifier: AppIdentifier, of user: UInt32, home: String, for app: InstalledApp,
    _ registry: Registry
  ) throws(StoreError) -> ContainerRecord? {
    let path = "Users/\(home)/\(ContainerLayout.path(of: identifier, kind))"
    let noted = try registry.containers(
      kind: kind, identifier: identifier, user: user, isMarkedForRemoval: false)
    guard let record = noted.first(where: { $0.path.hasSameBytes(as: path) }), record.team == app.signer,
      record.identity != nil, record.keeper == nil
    else { return nil }
    guard let container = try? tree.openDirectory(at: path) else { return nil }
    // What is noted on the object counts more than what is noted of its name.
    let team = Metadata(isSystem: description.mode == .system).note(of: container.fd)?.team
    if let team, team != app.signer, try !registry.isSuccessor(app.signer, of: team) { return nil }
    func status(_ path: String) -> FileStatus? { try? container.fd.status(at: path) }
    for directory in ContainerLayout.directories(of: kind) where status(directory)?.isDirectory != true {
      return nil
    }
    if kind.contentClass != nil, status(ContainerLayout.metadataName)?.isRegular != true { return nil }
    if kind == .data, status("\(ContainerLayout.dataName)/\(app.bundleName)")?.isSymlink != true {
      return nil
    }
    return record
  }

  /// The name of a user's home.
  package func home(of user: UInt32) throws(StoreError) -> String {
    let account = Account.numbered(user)?.name
    if let account, (try? Homes.checkName(account)) != nil,
      let status = try? tree.status(at: "Users/\(account)"),
      status.isDirectory, status.st_uid == user
    {
      return account
    }
    if let account, liesElsewhere(account) { throw .homeIsAway(path: "\(path)/tree/Users/\(account)") }
    let homes = try Homes(tree: tree, path: path + "/tree", mode: description.mode)
    guard let home = try homes.name(ofHomeOf: user) else {
      throw .noHome(path: "\(path)/tree/Users/\(account ?? "of uid \(user)")")
    }
    return home
  }
}

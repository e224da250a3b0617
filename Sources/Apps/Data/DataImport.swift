// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

extension AppContainer {
  /// Replaces the app's data by those of a package.
  ///
  /// A whole new container is made beside, and `exchange` puts it in the place of the old one in one step,
  /// which can be restored then.
  /// It describes itself as the old one did: whose the package was makes no difference.
  package func importData(
    from package: DataPackage, replacing: Bool, emptiness: DataCopy.Emptiness = .refused,
    progress: @escaping (TreeCopy.Count) -> Void = { _ in }, exchange: (NewData) throws -> Void
  ) throws -> DataReport {
    var rules = DataCopy.Rules(from: .package, to: access)
    rules.owner = owner
    rules.emptiness = emptiness
    rules.progress = progress
    let copy = DataCopy(rules)
    try replaceData(replacing: replacing, exchange: exchange) { (data) throws(DataFailure) in
      do throws(TreeCopyFailure) {
        for name in package.names {
          try copy.copy(name, from: package.data.fd, in: data, place: [DataPackage.dataName])
        }
        try copy.finish()
      } catch {
        throw .notCopied(from: package.path, error)
      }
    }
    return DataReport(count: copy.count, omissions: copy.omissions)
  }

  /// The same with data that `fill` puts into a new directory.
  func replaceData(
    replacing: Bool, exchange: (NewData) throws -> Void, fill: (FD) throws(DataFailure) -> Void
  ) throws {
    try refuseReadOnly()
    if !replacing, try hasData { throw DataFailure.hasData(path: path) }
    guard let identifier = AppIdentifier(name), let home = Homes.name(in: location) else {
      throw DataFailure.failed(doing: "replace", path: path, errno: .EINVAL)
    }
    let workshop = self.workshop(Workshop.importPrefix)
    try clear(workshop)
    let temporary = workshop.newName()
    do {
      try build(temporary, fill)
      try synchronize()
    } catch {
      discard(temporary)
      throw error
    }
    let built = try? ObjectIdentity(of: temporary, in: containers.fd)
    do {
      try exchange(
        NewData(
          copy: temporary, home: home, identifier: identifier, kind: kind == .data ? nil : kind, team: team))
    } catch {
      if let built, (try? ObjectIdentity(of: temporary, in: containers.fd)) == built { discard(temporary) }
      throw error
    }
  }

  /// Makes a container of new data and of what the old one has of its own.
  ///
  /// Until it is finished it is ours alone.
  private func build(_ name: String, _ fill: (FD) throws(DataFailure) -> Void) throws(DataFailure) {
    let top = try makeOwnDirectory(name, in: containers.fd)
    // What the directories above pass on is not the container's.
    try? access.setACL(nil, on: top.fd)
    let data =
      try kind == .data
      ? makeOwnDirectory(ContainerLayout.dataName, in: top.fd)
      : explaining("open", path) { () throws(Errno) in try top.fd.duplicated() }
    try fill(data.fd)
    try keepOwn(top.fd, data.fd)
    try explaining("complete", path) { () throws(Errno) in
      for path in ContainerLayout.directories(of: kind) { try complete(path, in: top.fd) }
      try give(data.fd)
      try give(top.fd)
    }
  }

  /// What describes the container, and the link to the bundle.
  private func keepOwn(_ top: FD, _ data: FD) throws(DataFailure) {
    var rules = DataCopy.Rules(from: access, to: access)
    rules.owner = owner
    let copy = DataCopy(rules)
    let links = try explaining("list", path) { () throws(Errno) in
      kind == .data ? try self.data.fd.entries(where: ContainerLayout.isBundleLink).map(\.name) : []
    }
    do throws(TreeCopyFailure) {
      try copy.copy(Array(ContainerLayout.metadataName.utf8), from: directory.fd, in: top)
      for link in links { try copy.copy(link, from: self.data.fd, in: data) }
    } catch {
      throw .notCopied(from: path, error)
    }
  }

  /// Makes one of a container's directories if it is not there; its parent is.
  private func complete(_ path: String, in top: FD) throws(Errno) {
    try top.withParent(of: path) { (parent, name) throws(Errno) in
      do throws(Errno) {
        guard try parent.status(of: name).isDirectory else { throw .ENOTDIR }
      } catch .ENOENT {
        try makeDirectory(name, in: parent)
      }
    }
  }
}

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
    // Until it is finished it is ours alone.
    let made = SharedFD(try makeOwnDirectory(temporary, in: containers.fd))
    do {
      let built = try made.use { (made) throws(Errno) in
        Result { () throws(DataFailure) in try build(made, fill) }
      }
      try built.get()
      try synchronize()
    } catch {
      discard(temporary, held: made)
      throw error
    }
    do {
      try exchange(
        NewData(
          copy: temporary, home: home, identifier: identifier, kind: kind == .data ? nil : kind, team: team))
    } catch {
      // If it is in the container's place by now, it stays.
      let named = try? containers.fd.status(of: temporary)
      let status = try? made.use { (made) throws(Errno) in try made.status() }
      if let named, status?.isSameObject(as: named) == true { discard(temporary, held: made) }
      throw error
    }
  }

  /// Makes a container of new data and of what the old one has of its own.
  private func build(_ top: FD, _ fill: (FD) throws(DataFailure) -> Void) throws(DataFailure) {
    // What the directories above pass on is not the container's.
    try? access.setACL(nil, on: top)
    let data =
      try kind == .data
      ? makeOwnDirectory(ContainerLayout.dataName, in: top)
      : explaining("open", path) { () throws(Errno) in try top.duplicated() }
    try fill(data.fd)
    try keepOwn(top, data.fd)
    try explaining("complete", path) { () throws(Errno) in
      for path in ContainerLayout.directories(of: kind) { try complete(path, in: top) }
      try give(data.fd)
      try give(top)
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

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO
package import Policy
internal import PropertyLists
internal import Store

/// A package of an app's data, as Xcode exports containers: `AppData`, which is what the app has as its home
/// and the file that describes the container, and `AppDataInfo.plist`, which says whose they are.
package final class DataPackage {
  static let dataName = "AppData"
  static let infoName = "AppDataInfo.plist"
  /// Xcode's packages lack these two.
  static let teamKey = "InsulaTeam"
  static let rootKey = "InsulaTeamRoot"
  package static let nameExtension = "xcappdata"
  /// What may be in `AppData` of another system's, and is of no use here.
  static let ignored = ["SystemData", ".DS_Store"]

  /// Where it is, for messages.
  package let path: String
  /// Whose data they are.
  package let identifier: AppIdentifier
  /// The team whose app has exported them; nil where the package does not say.
  package let team: BackupTeam?
  let data: OwnedFD
  /// What is there of what an app has at the top of its home.
  let names: [[UInt8]]

  /// Opens the package that a person named.
  package init(_ directory: FD, path: String) throws(DataFailure) {
    self.path = path
    func refuse(_ reason: String) -> DataFailure { .notAPackage(path: path, reason: reason) }
    guard (try? directory.status())?.isDirectory == true else { throw refuse("it is not a directory") }
    let bytes: [UInt8]
    do throws(Errno) {
      bytes = try directory.contents(of: Self.infoName, limit: 1 << 20)
      data = try directory.openDirectory(Self.dataName)
    } catch .ENOENT, .ENOTDIR, .ELOOP, .EINVAL {
      throw refuse("it has no \(Self.infoName) or no \(Self.dataName)")
    } catch {
      throw .failed(doing: "read", path: path, errno: error)
    }
    (identifier, team) = try Self.info(bytes, refuse)
    names = try Self.names(in: data.fd, path, isContainer: false, refuse)
  }

  /// Takes a container for one that a backup program has brought back somewhere.
  package init(
    container: FD, _ kind: ContainerKind, of identifier: AppIdentifier, path: String
  ) throws(DataFailure) {
    func refuse(_ reason: String) -> DataFailure { .notAPackage(path: path, reason: reason) }
    self.path = path
    self.identifier = identifier
    // Whose it is says the manifest of the backup.
    team = nil
    data = try explaining("open", path) { () throws(Errno) in
      try kind == .data ? container.openDirectory(ContainerLayout.dataName) : container.duplicated()
    }
    guard kind != .data else {
      names = try Self.names(in: data.fd, path, isContainer: true, refuse)
      return
    }
    let data = data.fd
    names = try explaining("list", path) { () throws(Errno) in try Self.namesOfGroup(in: data) }
  }

  /// What is there in the container of a group, but what describes it.
  static func namesOfGroup(in container: FD) throws(Errno) -> [[UInt8]] {
    try container.entries { name, _ in !name.buffer.elementsEqual(ContainerLayout.metadataName.utf8) }.map(
      \.name)
  }

  private static func info(
    _ bytes: [UInt8], _ refuse: (String) -> DataFailure
  ) throws(DataFailure) -> (AppIdentifier, BackupTeam?) {
    let list: PropertyList
    do throws(PropertyListError) {
      list = try PropertyList(reading: bytes)
    } catch {
      throw refuse("its \(infoName) can't be read: \(error)")
    }
    guard let text = list.dictionary?["CFBundleIdentifier"]?.string else {
      throw refuse("its \(infoName) has no CFBundleIdentifier")
    }
    guard let identifier = AppIdentifier(text) else { throw refuse("'\(text)' is not an app's identifier") }
    let team = list.dictionary?[teamKey]?.string.map {
      BackupTeam($0, root: list.dictionary?[rootKey]?.string)
    }
    return (identifier, team)
  }

  private static func names(
    in data: FD, _ path: String, isContainer: Bool, _ refuse: (String) -> DataFailure
  ) throws(DataFailure) -> [[UInt8]] {
    let entries = try explaining("list", "\(path)/\(dataName)") { () throws(Errno) in
      try data.entries(where: { name, type in
        // The link to the bundle is no data.
        !isContainer || !ContainerLayout.isBundleLink(name, type) || ContainerLayout.isDataName(name.buffer)
      }).map { entry throws(Errno) in
        (entry.name, try data.status(of: entry.name))
      }
    }
    var found: [[UInt8]] = []
    for (name, status) in entries {
      let text = String(decoding: name, as: UTF8.self)
      if text == ContainerLayout.metadataName || ignored.contains(text) { continue }
      guard ContainerLayout.isDataName(name) else { throw refuse("a container has no '\(dataName)/\(text)'") }
      guard ContainerLayout.isOwnName(name) || status.isDirectory else {
        throw refuse("'\(dataName)/\(text)' is not a directory")
      }
      found.append(name)
    }
    return found.inOrder { $0.lexicographicallyPrecedes($1) }
  }
}

extension AppContainer {
  /// Copies the app's data to a new package in a directory; it is there whole or not at all.
  package func export(
    _ app: AppDescription, to name: String, in parent: FD, at parentPath: String,
    progress: @escaping (TreeCopy.Count) -> Void = { _ in }
  ) throws(DataFailure) -> DataReport {
    let target = "\(parentPath)/\(name)"
    if parent.has(name) { throw .exists(path: target) }
    var rules = DataCopy.Rules(from: access, to: .package)
    rules.keepsSystemFlags = true
    rules.progress = progress
    let copy = DataCopy(rules)
    var failure: DataFailure?
    do throws(Errno) {
      try ExportPlace(parent: parent, name: name).put { (package) throws(Errno) in
        do throws(DataFailure) {
          try fill(package, target, app, copy)
        } catch {
          failure = error
          throw .EIO
        }
      }
    } catch .EEXIST {
      throw .exists(path: target)
    } catch {
      throw failure ?? .failed(doing: "make", path: target, errno: error)
    }
    return DataReport(count: copy.count, omissions: copy.omissions)
  }

  private func fill(
    _ package: FD, _ path: String, _ app: AppDescription, _ copy: DataCopy
  ) throws(DataFailure) {
    let target = try makeOwnDirectory(DataPackage.dataName, in: package, for: path)
    let names = try explaining("list", "\(self.path)/\(ContainerLayout.dataName)") { () throws(Errno) in
      try data.fd.entries { name, _ in ContainerLayout.isDataName(name.buffer) }.map(\.name)
    }
    do throws(TreeCopyFailure) {
      for name in names { try copy.copy(name, from: data.fd, in: target.fd) }
      if directory.fd.has(ContainerLayout.metadataName) {
        try copy.copy(Array(ContainerLayout.metadataName.utf8), from: directory.fd, in: target.fd)
      }
      try copy.finish()
    } catch {
      throw .notCopied(from: self.path, error)
    }
    try explaining("write", DataPackage.infoName) { () throws(Errno) in
      try package.replaceContents(of: DataPackage.infoName, with: try Self.info(app), mode: 0o644)
      try package.synchronizeFilesystem()
    }
  }

  private static func info(_ app: AppDescription) throws(Errno) -> [UInt8] {
    var list = PropertyList.Dictionary()
    list["CFBundleIdentifier"] = .string(app.identifier)
    list["CFBundleName"] = .string(app.name)
    list["CFBundleShortVersionString"] = .string(app.version)
    list["XCExecutableVersion"] = .string(app.build)
    list[DataPackage.teamKey] = .string(app.team)
    if let root = app.root { list[DataPackage.rootKey] = .string(root) }
    do throws(PropertyListError) {
      return try PropertyList.dictionary(list).xml()
    } catch {
      // A name that no property list can have; the registry takes such.
      throw .EINVAL
    }
  }
}

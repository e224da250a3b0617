// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// The open directory in which the bundles of a domain are.
struct AppsDirectory: ~Copyable {
  let directory: OwnedFD
  /// Below the root of the tree.
  let path: String
  let zone: Zone
  /// Whose app it is; nil for all users.
  let user: UInt32?
  /// Whom the files of its bundles belong to.
  let uid: UInt32
  let gid: UInt32

  /// Whether an app's bundle is here: the directory was named, and an identifier can be installed in another.
  func holds(_ app: InstalledApp) -> Bool {
    BundlePlace(path: app.path).parent.hasSameBytes(as: path)
  }

  /// Throws what stands in the way of a new bundle of that name.
  ///
  /// `known` is the name of a bundle that makes room for it.
  func check(
    _ name: String, among apps: [InstalledApp], besides known: String? = nil, in tree: String
  ) throws(AppFailure) {
    let place = BundlePlace(parent: path, name: name)
    if let app = apps.first(where: { $0.path.hasSameBytes(as: place.path) }) {
      throw .otherApp(path: "/\(place.path)", identifier: app.identifier.text)
    }
    let same: UInt8?
    let twin: String?
    let folded = name.folded
    do throws(Errno) {
      let listing = try directory.fd.reopened(O_RDONLY | O_DIRECTORY)
      same = try listing.fd.firstEntry { other, _ in other.buffer.elementsEqual(name.utf8) }?.type
      twin = try listing.fd.firstEntry { other, _ in
        let other = String(decoding: other.buffer, as: UTF8.self)
        return other.folded == folded && other != known
      }.map { String(decoding: $0.name, as: UTF8.self) }
    } catch {
      throw .failed(doing: "list", path: "\(tree)/\(path)", errno: error)
    }
    if let same { throw .inTheWay(path: "/\(place.path)", what: Self.words(for: same)) }
    if let twin { throw .twin(path: "/\(place.path)", other: twin) }
  }

  private static func words(for type: UInt8) -> String {
    switch Int32(type) {
    case Int32(DT_DIR): "a folder"
    case Int32(DT_REG): "a file"
    case Int32(DT_LNK): "a symbolic link"
    default: "something"
    }
  }
}

extension Installer {
  /// Opens the directory of a domain for someone who may change what is in it.
  ///
  /// A user's is made if it is missing, where that is wanted.
  func open(
    _ domain: AppDomain, by caller: CallerIdentity, doing: String, making: Bool
  ) throws(AppFailure) -> AppsDirectory {
    switch domain {
    case .everyone, .utilities, .network: try openEveryones(domain, by: caller, doing, making: making)
    case .user(let name): try openUsers(name, by: caller, doing, making: making)
    }
  }

  private func openEveryones(
    _ domain: AppDomain, by caller: CallerIdentity, _ doing: String, making: Bool
  ) throws(AppFailure) -> AppsDirectory {
    let path = domain.path
    let own = try opening("") { () throws(Errno) in try store.directory.status() }
    if making, domain == .network, caller.uid == own.st_uid { try makeNetworks(own, path) }
    let directory = try opening(path) { () throws(Errno) in try store.tree.openDirectory(at: path) }
    try authorize(directory.fd, path, domain.zone, caller, doing)
    return AppsDirectory(
      directory: directory, path: path, zone: domain.zone, user: nil, uid: own.st_uid,
      gid: store.description.mode == .system ? store.description.adminGroup.gid : own.st_gid)
  }

  /// A tree begins without it: it is a network's administrator who has apps there.
  private func makeNetworks(_ owner: FileStatus, _ path: String) throws(AppFailure) {
    let place = BundlePlace(path: path)
    let network = try opening(place.parent) { () throws(Errno) in
      try store.tree.openDirectory(at: place.parent)
    }
    guard try isMissing(place.name, in: network.fd, path) else { return }
    try makeApplications(in: network.fd, owner, path, isProtected: false)
  }

  private func openUsers(
    _ name: String, by caller: CallerIdentity, _ doing: String, making: Bool
  ) throws(AppFailure) -> AppsDirectory {
    let path = AppDomain.user(name).path
    let home = try openHome(name)
    let owner = try opening("Users/\(name)") { () throws(Errno) in try home.fd.status() }
    guard store.isHome(name, of: owner.st_uid) else {
      throw .store(.homeIsAway(path: "\(treePath)/Users/\(name)"))
    }
    guard caller.uid == 0 || caller.uid == owner.st_uid else {
      throw .notAllowed(doing: doing, path: "/\(path)")
    }
    let directory = try openApplications(in: home.fd, owner, path, making: making)
    try authorize(directory.fd, path, .homeApplications, caller, doing)
    return AppsDirectory(
      directory: directory, path: path, zone: .homeApplications, user: owner.st_uid, uid: owner.st_uid,
      gid: owner.st_gid)
  }

  /// Throws unless the caller may put bundles into a directory, by its mode, ACL and flags.
  private func authorize(
    _ directory: FD, _ path: String, _ zone: Zone, _ caller: CallerIdentity, _ doing: String
  ) throws(AppFailure) {
    let object = try object(directory, path, zone)
    // One after the other: an ACL may say yes to each and no to both at once.
    for right in [Rights.addSubdirectory, .search] {
      let answer = decide(right, on: object, by: caller.credentials, isMember: caller.membership)
      guard answer == .allow else { throw .notAllowed(doing: doing, path: "/\(path)") }
    }
  }

  /// Throws unless the caller may take an app's name away, as whoever renames or removes it is asked: who may
  /// add bundles to a directory may not remove others for that.
  ///
  /// The app itself is read-only for everyone, which says nothing of its name. One whose bundle is gone has
  /// none.
  func authorizeRemoval(
    of app: InstalledApp, from directory: borrowing AppsDirectory, by caller: CallerIdentity, doing: String
  ) throws(AppFailure) {
    let bundle: OwnedFD
    do throws(Errno) {
      bundle = try directory.directory.fd.child(app.bundleName)
    } catch .ENOENT {
      return
    } catch {
      throw .failed(doing: "open", path: "\(treePath)/\(app.path)", errno: error)
    }
    let parent = try object(directory.directory.fd, directory.path, directory.zone)
    let object = try object(bundle.fd, app.path, directory.zone.inside)
    let answer = decide(
      .delete, on: object, in: parent, by: caller.credentials, isMember: caller.membership)
    guard answer == .allow else { throw .notAllowed(doing: doing, path: "/\(directory.path)") }
  }

  /// The same of what apps have left, of which no bundle is there.
  func authorizeRemoval(
    from directory: borrowing AppsDirectory, by caller: CallerIdentity, doing: String
  ) throws(AppFailure) {
    let object = try object(directory.directory.fd, directory.path, directory.zone)
    let answer = decide(.deleteChild, on: object, by: caller.credentials, isMember: caller.membership)
    guard answer == .allow else { throw .notAllowed(doing: doing, path: "/\(directory.path)") }
  }

  private func object(_ object: FD, _ path: String, _ zone: Zone) throws(AppFailure) -> Object {
    try opening(path) { () throws(Errno) in
      let status = try object.status()
      let isSystem = store.description.mode == .system
      let security = try Metadata(isSystem: isSystem).security(of: object)
      return Object(
        uid: status.st_uid, gid: status.st_gid, mode: security.mode(status.permissions),
        kind: status.isDirectory ? .directory : .file, zone: zone, flags: security.flags, acl: security.acl)
    }
  }

  /// Opens the home of that name.
  private func openHome(_ name: String) throws(AppFailure) -> OwnedFD {
    let failure = AppFailure.store(.noHome(path: "\(treePath)/Users/\(name)"))
    guard name != "Shared", !name.hasPrefix("."), !name.utf8.contains(0), !name.utf8.contains(0x2f),
      !name.isEmpty
    else { throw failure }
    do throws(Errno) {
      return try store.tree.openDirectory(at: "Users/\(name)")
    } catch .ENOENT, .ENOTDIR, .ELOOP {
      throw failure
    } catch {
      throw .failed(doing: "open", path: "\(treePath)/Users/\(name)", errno: error)
    }
  }

  private func openApplications(
    in home: FD, _ owner: FileStatus, _ path: String, making: Bool
  ) throws(AppFailure) -> OwnedFD {
    let name = "Applications"
    if making, try isMissing(name, in: home, path) {
      try makeApplications(in: home, owner, path, isProtected: true)
    }
    do throws(Errno) {
      let directory = try home.openDirectory(name)
      guard try directory.fd.status().st_uid == owner.st_uid else { throw .EPERM }
      return directory
    } catch .ENOTDIR, .ELOOP {
      throw .inTheWay(path: "/\(path)", what: "something that is not a folder")
    } catch .EPERM {
      throw .inTheWay(path: "/\(path)", what: "a folder that belongs to someone else")
    } catch {
      throw .failed(doing: "open", path: "\(treePath)/\(path)", errno: error)
    }
  }

  private func isMissing(_ name: String, in home: FD, _ path: String) throws(AppFailure) -> Bool {
    do throws(Errno) {
      _ = try home.status(of: name)
      return false
    } catch .ENOENT {
      return true
    } catch {
      throw .failed(doing: "examine", path: "\(treePath)/\(path)", errno: error)
    }
  }

  /// Made where its owner can't reach it, so that nothing of theirs is taken for it.
  ///
  /// In a home it is protected as the standard directories there are.
  private func makeApplications(
    in home: FD, _ owner: FileStatus, _ path: String, isProtected: Bool
  ) throws(AppFailure) {
    let made = try registered { () throws(StoreError) in
      try StagedTree(
        emptyIn: store, for: path, uid: owner.st_uid, gid: owner.st_gid, mode: 0o755)
    }
    let place = BundlePlace(path: path)
    do throws(Errno) {
      let directory = try made.open()
      if isProtected {
        try SecurityAccess.store(Metadata(isSystem: store.description.mode == .system)).give(
          HomeDirectory.staying, to: directory.fd)
      }
      try observer.changing(.directory(name: place.name, in: place.parent)) { () throws(Errno) in
        try made.place(as: place.name, in: home)
      }
      try home.synchronize(dataOnly: false)
    } catch .EEXIST {
      // Someone has just made it.
    } catch {
      throw .failed(doing: "create", path: "\(treePath)/\(path)", errno: error)
    }
  }

  // MARK: Words for failures

  var treePath: String { "\(store.path)/tree" }

  func opening<Result: ~Copyable>(
    _ path: String, _ body: () throws(Errno) -> Result
  ) throws(AppFailure) -> Result {
    do throws(Errno) { return try body() } catch {
      throw .failed(doing: "open", path: "\(treePath)/\(path)", errno: error)
    }
  }

  /// Runs what the store or its registry does; those of its failures that are about apps get their own names.
  func registered<Result: ~Copyable>(
    _ body: () throws(StoreError) -> Result
  ) throws(AppFailure) -> Result {
    do throws(StoreError) { return try body() } catch { throw AppFailure(ofRegistry: error) }
  }
}

extension AppFailure {
  /// Not inlined, since it would be a part of every kind of `registered`.
  @inline(never)
  fileprivate init(ofRegistry error: StoreError) {
    switch error {
    case .appBusy(let identifier): self = .busy(identifier: identifier)
    case .appExists(let identifier, let path):
      self = .alreadyInstalled(identifier: identifier, path: "/\(path)")
    default: self = .store(error)
    }
  }
}

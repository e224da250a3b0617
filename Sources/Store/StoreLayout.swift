// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO
internal import Policy

/// What a store consists of, and how it is laid out.
package enum StoreLayout {
  package static let descriptionName = "store.plist"
  /// Lies in a store that is being made in place; a store that is made beside needs none.
  static let unfinishedName = "unfinished"
  /// Holds what the daemon has begun to make; it is there while one runs, and empty when one begins.
  static let stagingPath = "state/staging"
  /// Holds the copies of updates that wait until their apps run no more; see ``WaitingUpdate``.
  static let updatesPath = "state/\(updatesName)"
  package static let updatesName = "updates"
  /// Holds the containers that were removed and can be restored; see ``RemovedContainer``.
  static let removedPath = "state/\(removedName)"
  static let removedName = "removed"
  /// Holds what may be a former user's; see ``Containers/setAside(of:)``.
  static let formerPath = "state/\(formerName)"
  static let formerName = "former"
  /// Holds the roots that are trusted; see ``Store/openTrust()``.
  static let trustPath = "keys/trust"
  /// The daemon's directories beside `tree`; nobody else has any business there.
  static let privateDirectories = ["state", "keys"]

  /// Who owns what `insula init` makes.
  struct Ownership {
    let uid: UInt32
    let gid: UInt32
    let adminGid: UInt32
    private let metadata: Metadata

    init(_ description: StoreDescription, uid: UInt32, gid: UInt32) {
      self.uid = uid
      self.gid = gid
      adminGid = description.mode == .system ? description.adminGroup.gid : gid
      metadata = Metadata(isSystem: description.mode == .system)
    }

    /// Gives a standard directory its flags, where the filesystem below keeps such.
    func setFlags(_ flags: FileFlags, on directory: FD) throws(Errno) {
      guard !flags.isEmpty else { return }
      do throws(Errno) { try metadata.setFlags(flags, on: directory) } catch .EOPNOTSUPP {}
    }

    /// Whether a standard directory lacks flags that it begins with.
    func lacksFlags(_ flags: FileFlags, _ directory: FD) -> Bool {
      guard !flags.isEmpty, let security = try? metadata.security(of: directory) else { return false }
      return !security.flags.isSuperset(of: flags)
    }

    func gid(of group: StandardDirectory.Group) -> UInt32 { group == .admin ? adminGid : gid }
  }

  /// Makes everything in an empty directory, the description last: with it the directory becomes a store.
  static func fill(_ root: FD, _ description: StoreDescription, _ owners: Ownership) throws(Errno) {
    for name in privateDirectories {
      try makeDirectory(name, in: root, mode: 0o700, uid: owners.uid, gid: owners.gid)
    }
    try makeLock(in: root)
    try root.withParent(of: stagingPath) { (state, name) throws(Errno) in
      try makeDirectory(name, in: state, mode: 0o700, uid: owners.uid, gid: owners.gid)
    }
    try makeDirectory("tree", in: root, mode: DomainTree.root.mode, uid: owners.uid, gid: owners.gid)
    let tree = try root.openDirectory("tree")
    for directory in DomainTree.directories { try make(directory, in: tree.fd, owners, isNew: true) }
    try tree.fd.synchronizeFilesystem()
    try root.replaceContents(of: descriptionName, with: description.encoded(), mode: 0o600)
  }

  /// Makes the file to lock now, so that the store can be used on a disk that is full or read-only by then.
  private static func makeLock(in root: FD) throws(Errno) {
    let state = try root.openDirectory("state")
    _ = try state.fd.open(StoreLock.fileName, O_RDWR | O_CREAT, mode: 0o600)
  }

  /// Makes a standard directory, or gives one that is there its owner and mode; a new one also its flags.
  static func make(
    _ directory: StandardDirectory, in tree: FD, _ owners: Ownership, isNew: Bool = false
  ) throws(Errno) {
    let gid = owners.gid(of: directory.group)
    try tree.withParent(of: directory.path) { (parent, name) throws(Errno) in
      try makeDirectory(name, in: parent, mode: directory.mode, uid: owners.uid, gid: gid)
      guard isNew, !directory.flags.isEmpty else { return }
      let made = try parent.openDirectory(name)
      try owners.setFlags(directory.flags, on: made.fd)
    }
  }

  /// Has a directory shown to people under its name in their language: see ``DisplayName``.
  static func mark(_ directory: FD, uid: UInt32, gid: UInt32) throws(Errno) {
    let marker = try directory.open(
      DisplayName.marker, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
    try marker.fd.changeOwner(uid: uid, gid: gid)
    try marker.fd.changeMode(0o644)
  }

  /// Makes what a store of an earlier version does not have.
  package static func addNewDirectories(to store: Store) throws(Errno) {
    for directory in [DomainTree.trash, DomainTree.servers] where !store.tree.has(directory.path) {
      let own = try store.directory.status()
      try make(directory, in: store.tree, Ownership(store.description, uid: own.st_uid, gid: own.st_gid))
    }
  }

  /// Makes a directory with exactly this owner and mode, whatever the umask; one that is there gets them.
  package static func makeDirectory(
    _ name: String, in parent: FD, mode: UInt32, uid: UInt32, gid: UInt32
  ) throws(Errno) {
    try name.withName { (name) throws(Errno) in
      do throws(Errno) {
        try parent.makeDirectory(name, mode: 0o700)
      } catch {
        guard error == .EEXIST, try parent.status(of: name).isDirectory else { throw error }
      }
      let made = try parent.child(name)
      // The owner first: a change of owner takes set-id bits away.
      try made.fd.changeOwner(uid: uid, gid: gid)
      try made.fd.changeMode(mode)
    }
  }

  /// Whether an `insula init` of ours was interrupted in this directory.
  ///
  /// Anybody can make a file of that name, and put beside it what is to be in the store: so the directory and
  /// all that is in it must be ours, and nobody else may have been able to put it there.
  static func isUnfinished(_ root: FD) -> Bool {
    guard let status = try? root.status(), status.isOursAlone,
      let marker = try? root.status(of: unfinishedName), marker.isRegular, marker.isOursAlone,
      let entries = try? root.entries()
    else { return false }
    let known = Set((privateDirectories + ["tree", unfinishedName]).map { Array($0.utf8) })
    return entries.allSatisfy {
      $0.name.elementsEqual("lost+found".utf8)
        || known.contains($0.name) && isOurs($0.name, in: root, depth: 0)
    }
  }

  /// Whether something, and all that is in it, can be what we have made: directories and files of ours.
  private static func isOurs(_ name: [UInt8], in parent: FD, depth: Int) -> Bool {
    guard depth < 16, let status = try? parent.status(of: name), status.st_uid == ProcessID.user else {
      return false
    }
    guard status.isDirectory else { return status.isRegular && status.st_nlink == 1 }
    guard let directory = try? parent.openDirectory(name), let entries = try? directory.fd.entries() else {
      return false
    }
    return entries.allSatisfy { isOurs($0.name, in: directory.fd, depth: depth + 1) }
  }

  /// Tells a stranger's directory from a store that never was finished or has lost its description.
  static func whyNoDescription(_ root: FD, path: String) -> StoreError {
    guard let entries = try? root.entries() else {
      return .notAStore(path: path, reason: "it has no store.plist")
    }
    let names = Set(entries.map { String(decoding: $0.name, as: UTF8.self) })
    if isUnfinished(root) { return .halfMade(path: path) }
    if names.isSuperset(of: ["tree", "state"]) {
      return .damaged(path: path, what: "store.plist is missing")
    }
    return .notAStore(path: path, reason: names.isEmpty ? "it is empty" : "it has no store.plist")
  }
}

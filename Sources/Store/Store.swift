// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import LinuxIO
internal import Policy
internal import Synchronization

/// An opened store: the backing directory, its description and, unless it is only looked at, its lock.
///
/// The path is used once, to open the directory; everything else is anchored in the descriptors that are kept
/// here.
package final class Store: Sendable {
  /// What the caller means to do.
  package enum Access: Sendable {
    /// Nobody else may use the store meanwhile.
    case exclusive
    /// The same to mend it: its own directory may be open to others.
    case mending
    /// As ``exclusive``, for a process that is going to fork: it has no thread, and others renew the
    /// ``lease``.
    case serving
    /// As ``serving``, but nothing will be written, so the filesystem below may be read-only.
    case exclusiveReadOnly
    /// Looks at it, whoever uses it meanwhile.
    case inspect
    /// Goes on with what another program has used, and has left its lock for us.
    case resumed(lock: FD)
  }

  /// The path that it was opened by, for messages.
  package let path: String
  /// The same as a person has given it, with its links.
  let named: String
  package let description: StoreDescription

  private let root: OwnedFD
  private let stateDirectory: OwnedFD
  private let treeDirectory: OwnedFD
  private let lock: StoreLock?
  /// What keeps other machines from using the store; nil where no other machine has its filesystem, or
  /// nothing is written.
  package let lease: StoreLease?
  /// After which nothing of it may be changed by this process.
  package var deadlines: [Deadline] { lease.map { [$0.deadline] } ?? [] }

  /// The directory that the mount shows, open for reading, as `open_by_handle_at(2)` wants it.
  package var tree: FD { treeDirectory.fd }
  /// The directory of the daemon's own files.
  package var state: FD { stateDirectory.fd }
  /// The store itself.
  package var directory: FD { root.fd }
  /// Whether the store is ours alone: nobody else has the lock, and no daemon uses the store.
  var isOursAlone: Bool { lock?.isExclusive == true }
  /// Whether somebody has looked whether what is in the registry fits together: who begins to use the store
  /// does, also for whoever goes on with that.
  let hasSoundRegistry: Atomic<Bool>
  /// What holds the store's lock, if that is ours.
  package var lockDescriptor: FD? { lock?.fd }

  /// Opens the store at `path`; `named` is what a person has given for it, if that has links.
  package init(opening path: String, named: String? = nil, _ access: Access) throws(StoreError) {
    self.path = path
    self.named = named ?? path
    do throws(Errno) {
      root = try Self.openRoot(path)
    } catch {
      switch error {
      case .ENOENT: throw .notThere(path: path)
      case .ENOTDIR: throw .notAStore(path: path, reason: "it is not a directory")
      default: throw StoreError(error, doing: "open the store", path: path)
      }
    }
    description = try Self.readDescription(root.fd, path: path)
    try Self.checkOwner(root.fd, path: path)
    switch access {
    case .exclusive, .serving, .exclusiveReadOnly:
      try Self.checkDoor(root.fd, path: path, named: self.named) { _ in true }
    case .mending: try Self.checkDoor(root.fd, path: path, named: self.named) { !$0.isMendable }
    case .inspect, .resumed: break
    }
    treeDirectory = try Self.part("tree", of: root.fd, path: path)
    stateDirectory = try Self.part("state", of: root.fd, path: path)
    lock =
      switch access {
      case .exclusive, .mending, .serving:
        try StoreLock(state: stateDirectory.fd, path: path, readOnly: false)
      case .exclusiveReadOnly: try StoreLock(state: stateDirectory.fd, path: path, readOnly: true)
      case .inspect: nil
      case .resumed(let lock): try StoreLock(adopting: lock, state: stateDirectory.fd, path: path)
      }
    if case .resumed = access { hasSoundRegistry = Atomic(true) } else { hasSoundRegistry = Atomic(false) }
    lease = try Self.lease(on: stateDirectory.fd, path: path, access)
  }

  /// Another process has looked, which has used the store until now.
  package func goesOn() { hasSoundRegistry.store(true, ordering: .releasing) }

  /// Opens it once more, as the path says where it is: to change what was only looked at.
  ///
  /// Throws if another store lies there by now.
  package func openedAgain(_ access: Access) throws(StoreError) -> Store {
    let store = try Store(opening: path, named: named, access)
    guard store.identity == identity else { throw .notThere(path: path) }
    return store
  }

  private static func lease(on state: FD, path: String, _ access: Access) throws(StoreError) -> StoreLease? {
    guard (try? state.filesystemKind().isRemote) == true else { return nil }
    switch access {
    case .inspect, .exclusiveReadOnly: return nil
    case .serving: return try StoreLease.acquire(state, path: path)
    case .resumed: return try StoreLease(resuming: state, path: path)
    case .exclusive, .mending:
      let lease = try StoreLease.acquire(state, path: path)
      try explaining("keep the lease of", path) { () throws(Errno) in try lease.startRenewing { _ in } }
      return lease
    }
  }

  deinit { lease?.release() }

  /// Opens the tree and a directory for what the daemon has not finished.
  ///
  /// Both through `root`, the store itself or another mount of it: between two mounts nothing could be moved.
  /// Of what earlier daemons have not finished, only ``removeLeft()`` finds something there.
  ///
  /// There is no such directory where it is missing and can't be made: the disk is full or read-only.
  package static func openParts(of root: FD) throws(Errno) -> ServedParts {
    let tree = try root.openDirectory("tree")
    return ServedParts(tree: tree, staging: try emptyStaging(in: root))
  }

  /// The path of the directory for what is not finished, for messages.
  package var stagingPath: String { "\(path)/\(StoreLayout.stagingPath)" }

  /// Opens the directory for what is not finished, with whatever is in it; a store of an earlier version gets
  /// one.
  package func openStaging() throws(StoreError) -> OwnedFD {
    try explaining("open", stagingPath) { () throws(Errno) in
      try directory.withParent(of: StoreLayout.stagingPath) { (state, name) throws(Errno) in
        try state.openDirectory(name, makingWith: 0o700)
      }
    }
  }

  /// Opens the directory of updates that wait, which is made if it is missing; nobody but us gets there.
  package func openUpdates() throws(StoreError) -> OwnedFD {
    try explaining("open", "\(path)/\(StoreLayout.updatesPath)") { () throws(Errno) in
      try directory.withParent(of: StoreLayout.updatesPath) { (state, name) throws(Errno) in
        try state.openDirectory(name, makingWith: 0o700)
      }
    }
  }

  /// Opens the directory of removed containers, which is made if it is missing; nobody but us gets there.
  func openRemoved() throws(StoreError) -> OwnedFD {
    try explaining("open", "\(path)/\(StoreLayout.removedPath)") { () throws(Errno) in
      try directory.withParent(of: StoreLayout.removedPath) { (state, name) throws(Errno) in
        try state.openDirectory(name, makingWith: 0o700)
      }
    }
  }

  /// Makes a directory for what may be a former user's; nobody but us gets there.
  func makeFormer(_ name: String) throws(StoreError) -> OwnedFD {
    try explaining("create", "\(path)/\(StoreLayout.formerPath)/\(name)") { () throws(Errno) in
      let former = try directory.withParent(of: StoreLayout.formerPath) { (state, name) throws(Errno) in
        try state.openDirectory(name, makingWith: 0o700)
      }
      return try former.fd.openDirectory(name, makingWith: 0o700)
    }
  }

  /// What was in it when a daemon was stopped has never been seen by anyone.
  private static func emptyStaging(in root: FD) throws(Errno) -> OwnedFD? {
    try root.withParent(of: StoreLayout.stagingPath) { (state, name) throws(Errno) in
      do throws(Errno) {
        // Stores of earlier versions have none.
        let staging = try state.openDirectory(name, makingWith: 0o700)
        // Contents that were purged are known by their names, and what a flag protects of them stays.
        let unfinished = try staging.fd.entries().map(\.name).filter {
          !isAside($0) && !PurgedContents.isName($0)
        }
        try putAside(unfinished, in: staging.fd)
        return staging
      } catch .EROFS, .ENOSPC {
        return nil
      }
    }
  }

  /// Gives what is left names by which ``removeLeft()`` finds it: to remove it may take minutes, and who
  /// takes over a mount lets nobody wait.
  ///
  /// In the same directory: a directory that goes to another one is locked for that in the kernel, where a
  /// thread of the former daemon may wait that a user keeps waiting.
  private static func putAside(_ names: [[UInt8]], in staging: FD) throws(Errno) {
    for name in names {
      try name.withName { (name) throws(Errno) in
        try staging.rename(name, to: staging, newNameAside(), flags: UInt32(CLX_RENAME_NOREPLACE))
      }
    }
  }

  /// A name in the directory for what is not finished that nothing has, for what ``removeLeft()`` removes.
  package static func newNameAside() -> String { "\(asidePrefix)\(UUIDText.random())" }

  private static let asidePrefix = "left-"
  package static func isAside(_ name: [UInt8]) -> Bool { name.starts(with: asidePrefix.utf8) }

  /// Removes what earlier daemons were stopped in; a process that serves the store does not wait for it.
  package func removeLeft() throws(StoreError) {
    let staging = try openStaging()
    do throws(Errno) {
      let left = try staging.fd.entries().map(\.name).filter(Self.isAside)
      try Leftovers.ofProcess.remove(left, from: staging) { (staging, name) throws(Errno) in
        try staging.removeTree(name)
      }
    } catch {
      throw StoreError(error, doing: "clear", path: stagingPath)
    }
  }

  /// Notes in the lock where the store is mounted, for the message that others get.
  package func announce(mountPoint: String) {
    lock?.announce(StoreHolder(pid: ProcessID.own, mountPoint: mountPoint))
  }

  /// Lets others use the store, whoever still has a descriptor of ours.
  package func unlock() {
    lease?.release()
    lock?.unlock()
  }

  /// Whether a daemon uses the store now, also one that only reads it.
  package var isInUse: Bool { StoreLock.isTaken(state: state) }

  /// The other machine that uses the store, as far as it has said so and has not given it back.
  package var otherMachine: String? {
    guard (try? state.filesystemKind().isRemote) == true, let files = try? LeaseFiles(lookingIn: state),
      let (top, record) = try? files.top(), case .held = top, let host = record?.host, host != hostName()
    else { return nil }
    return host
  }

  /// The daemon that uses the store now, if one does.
  package var holder: StoreHolder? { StoreLock.currentHolder(state: state) }

  /// Opens the directory that a user named; the one place where a whole path is walked.
  static func openRoot(_ path: String) throws(Errno) -> OwnedFD {
    try FD.cwd.openFollowing(path, O_RDONLY | O_DIRECTORY)
  }

  private static func readDescription(_ root: FD, path: String) throws(StoreError) -> StoreDescription {
    let bytes: [UInt8]
    do throws(Errno) {
      bytes = try root.contents(of: StoreLayout.descriptionName, limit: 1 << 20)
    } catch {
      guard error == .ENOENT else { throw StoreError(error, doing: "read store.plist of", path: path) }
      throw StoreLayout.whyNoDescription(root, path: path)
    }
    return try StoreDescription.decoded(bytes, path: path)
  }

  /// A store is used by whom it belongs to: anyone else would leave objects of a wrong owner in it.
  private static func checkOwner(_ root: FD, path: String) throws(StoreError) {
    let status: FileStatus
    do throws(Errno) { status = try root.status() } catch {
      throw StoreError(error, doing: "examine", path: path)
    }
    guard status.st_uid == ProcessID.user else { throw .belongsToOther(path: path, uid: status.st_uid) }
  }

  private static func checkDoor(
    _ root: FD, path: String, named: String, _ counts: (StoreDoorFinding) -> Bool
  ) throws(StoreError) {
    let findings = doorFindings(of: root, at: path, named: named)
    guard let finding = findings.first(where: { $0.problem.letsOthersExchange && counts($0) }) else { return }
    throw .exchangeable(path: path, finding: finding)
  }

  private static func part(_ name: String, of root: FD, path: String) throws(StoreError) -> OwnedFD {
    do throws(Errno) {
      return try root.open(name, O_RDONLY | O_DIRECTORY)
    } catch {
      switch error {
      case .ENOENT, .ENOTDIR, .ELOOP:
        throw .damaged(path: path, what: "its directory '\(name)' is missing or not a directory")
      default: throw StoreError(error, doing: "open", path: path + "/" + name)
      }
    }
  }
}

/// What of a store a daemon serves from.
package struct ServedParts: ~Copyable, Sendable {
  /// The directory that the mount shows.
  package let tree: OwnedFD
  private let stagingDirectory: OwnedFD?

  init(tree: consuming OwnedFD, staging: consuming OwnedFD?) {
    self.tree = tree
    stagingDirectory = staging
  }

  /// Where objects are made that have an ACL from the start.
  package var staging: FD? {
    switch stagingDirectory {
    case .some(let directory): directory.fd
    case .none: nil
    }
  }
}

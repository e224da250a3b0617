// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Bundles
internal import CLinux
internal import Glibc
package import LinuxIO
internal import Policy
package import Store
internal import Synchronization

/// What the system domain of a store consists of: `/System`, sealed and exchanged as one tree.
///
/// `state/system` holds `previous`, the version before, `next` while one is exchanged, and what is being
/// removed. The registry notes what is about to become current, then one rename makes it so, then the
/// registry notes that it is. The digest of the seal that lies in `/System` tells on which side of that
/// rename a process was stopped, so whoever comes next can end what it has begun.
package final class SystemDomain: Sendable {
  let store: Store
  let registry: Registry
  let trust: Trust
  let observer: any TreeObserver
  let time: @Sendable () -> Int64
  /// One exchange at a time, whichever object makes it.
  private static let turn = Mutex(())

  package init(
    _ store: Store, _ registry: Registry, trust: Trust, observer: any TreeObserver = NoTreeObserver(),
    time: @escaping @Sendable () -> Int64 = { Int64(Glibc.time(nil)) }
  ) {
    self.store = store
    self.registry = registry
    self.trust = trust
    self.observer = observer
    self.time = time
  }

  static let treeName = "System"
  private static let directoryName = "system"
  private static let nextName = "next"
  private static let previousName = "previous"
  private var path: String { "\(store.path)/state/\(Self.directoryName)" }

  /// Where the two versions lie in a store.
  static let treePath = "tree/\(treeName)"
  static let previousPath = "state/\(directoryName)/\(previousName)"

  /// The versions that there are.
  package func versions() throws(SystemFailure) -> SystemVersions {
    try stored { () throws(StoreError) in try registry.systemVersions() }
  }

  /// Puts a signed tree, open for reading, in the place of the system domain, whole.
  ///
  /// `name` is what its user calls it.
  @discardableResult
  package func update(
    from source: FD, named name: String, _ wait: InstallWait = .init()
  ) throws(SystemFailure) -> SystemVersions {
    try inTurn { () throws(SystemFailure) in
      let directory = try recovered()
      // First, so that nothing is copied that will not do; then again, of the copy.
      let announced = try signature(in: source, name)
      let versions = try self.versions()
      guard announced.rootHash != versions.current.root else {
        throw .sameVersion(version: announced.seal.version)
      }
      let report = InstallReport(wait)
      report.enter(.copying)
      let staged = try StagedSystem(source, named: name, in: store) { report.copied($0) }
      let signed = try staged.withDirectory { (copy) throws(SystemFailure) in
        let signed = try signature(in: copy, name)
        guard signed.rootHash == announced.rootHash else {
          throw .notCopied(path: name, TreeCopyFailure(path: "", reason: .changed))
        }
        return signed
      }
      try staged.finish(signed.seal)
      let next = SystemVersion(
        root: signed.rootHash, version: signed.seal.version, team: signed.seal.team, installed: time())
      try stored { () throws(StoreError) in try registry.beginSystem(next) }
      do throws(SystemFailure) {
        try attempting("move", path) { () throws(Errno) in
          try staged.place(as: Self.nextName, in: directory.fd)
        }
        try exchange(Self.nextName, in: directory.fd, next.root, before: versions.current.root)
      } catch {
        try? stored { () throws(StoreError) in try registry.abandonSystem() }
        remove(Self.nextName, in: directory.fd)
        throw error
      }
      return try reconcile(directory.fd)
    }
  }

  /// Goes back to the version before; another time, and it is undone.
  @discardableResult
  package func rollback(progress: @escaping (Int64) -> Void = { _ in }) throws(SystemFailure)
    -> SystemVersions
  {
    try inTurn { () throws(SystemFailure) in
      let directory = try recovered()
      let versions = try versions()
      let current = versions.current
      guard let previous = versions.previous else { throw .noPrevious }
      let path = "\(self.path)/\(Self.previousName)"
      let tree = try attempting("open", path) { () throws(Errno) in
        try directory.fd.openDirectory(Self.previousName)
      }
      // What a store begins with has no seal.
      if !previous.root.isEmpty { try verify(tree.fd, root: previous.root, path, progress) }
      try stored { () throws(StoreError) in try registry.beginSystem(previous) }
      do throws(SystemFailure) {
        try exchange(Self.previousName, in: directory.fd, previous.root, before: current.root)
      } catch {
        try? stored { () throws(StoreError) in try registry.abandonSystem() }
        throw error
      }
      return try reconcile(directory.fd)
    }
  }

  /// Ends what a process was stopped in: forward where the exchange was made, back where not.
  package func recover() throws(SystemFailure) {
    try inTurn { () throws(SystemFailure) in
      // Where the domain was never replaced there is nothing to end. The disk may be full, so make nothing.
      if try versions().next == nil, !hasDirectory { return }
      _ = try recovered()
    }
  }

  private var hasDirectory: Bool {
    do throws(Errno) {
      _ = try store.state.openDirectory(Self.directoryName)
      return true
    } catch {
      return error != .ENOENT
    }
  }

  /// All in which the system domain is not what was installed; empty also where it never was sealed.
  package func findings(
    progress: @escaping (Int64) -> Void = { _ in }
  ) throws(SystemFailure) -> [SystemFinding] {
    let current = try versions().current
    if current.root.isEmpty { return [] }
    let path = "\(store.path)/tree/\(Self.treeName)"
    let tree = try attempting("open", path) { () throws(Errno) in
      try store.tree.openDirectory(Self.treeName)
    }
    do throws(SystemFailure) {
      try verify(tree.fd, root: current.root, path, progress)
    } catch .differs(_, let findings) {
      return findings
    }
    return []
  }

  /// Makes sure that a tree is the version that was noted; unless `isDeep`, by its seal alone.
  func check(_ tree: FD, _ version: SystemVersion, _ path: String, isDeep: Bool) throws(SystemFailure) {
    guard !version.root.isEmpty else {
      let found = Result { () throws(SystemSignature.Failure) in try SystemSignature(in: tree) }
      if case .failure(.unsigned) = found { return }
      throw .differs(path: path, [SystemFinding(kind: .added, path: SystemSeal.directoryName)])
    }
    guard isDeep else {
      _ = try noted(tree, root: version.root, path)
      return
    }
    try verify(tree, root: version.root, path) { _ in }
  }

  // MARK: Steps

  private func inTurn<Result: Sendable>(
    _ body: () throws(SystemFailure) -> Result
  ) throws(SystemFailure) -> Result {
    try Self.turn.withLock { (_) throws(SystemFailure) in try body() }
  }

  private func signature(in tree: FD, _ path: String) throws(SystemFailure) -> SystemSignature {
    let signature: SystemSignature
    do throws(SystemSignature.Failure) {
      signature = try SystemSignature(in: tree)
      _ = try signature.verify(trust, at: time())
    } catch {
      throw .notSigned(path: path, error)
    }
    try SystemSkeleton.check(signature.seal, path)
    return signature
  }

  /// A tree that was installed once needs no certificates: its seal must be the one that was noted.
  private func verify(
    _ tree: FD, root: [UInt8], _ path: String, _ progress: @escaping (Int64) -> Void
  ) throws(SystemFailure) {
    let signature = try noted(tree, root: root, path)
    let owner = try attempting("examine", store.path) { () throws(Errno) in try store.directory.status() }
    let findings: [SystemFinding]
    do throws(SystemSealFailure) {
      findings = try signature.seal.findings(
        in: tree, .installed(uid: owner.st_uid, gid: owner.st_gid), progress: progress)
    } catch {
      throw .notSealable(path: path, error)
    }
    guard findings.isEmpty else { throw .differs(path: path, findings) }
  }

  private func noted(_ tree: FD, root: [UInt8], _ path: String) throws(SystemFailure) -> SystemSignature {
    let signature: SystemSignature
    do throws(SystemSignature.Failure) { signature = try SystemSignature(in: tree) } catch {
      throw .notSigned(path: path, error)
    }
    guard signature.rootHash == root else {
      throw .differs(
        path: path,
        [SystemFinding(kind: .contents, path: "\(SystemSeal.directoryName)/\(SystemSeal.sealName)")])
    }
    return signature
  }

  /// The one call that makes a change visible.
  private func exchange(
    _ name: String, in directory: FD, _ root: [UInt8], before: [UInt8]
  ) throws(SystemFailure) {
    try attempting("replace", "\(store.path)/tree/\(Self.treeName)") { () throws(Errno) in
      try observer.changing(.system(root: root, before: before)) { () throws(Errno) in
        try name.withName { (name) throws(Errno) in
          try Self.treeName.withName { (tree) throws(Errno) in
            try directory.rename(name, to: store.tree, tree, flags: UInt32(CLX_RENAME_EXCHANGE))
          }
        }
      }
    }
  }

  /// The exchange is made: what was current becomes what can be gone back to.
  private func reconcile(_ directory: FD) throws(SystemFailure) -> SystemVersions {
    try attempting("write to disk", store.path) { () throws(Errno) in
      try store.tree.synchronize(dataOnly: false)
      try directory.synchronize(dataOnly: false)
    }
    let versions = try self.versions()
    if Self.root(of: Self.nextName, in: directory) == versions.current.root {
      try attempting("keep the previous version in", path) { () throws(Errno) in
        let isThere = Self.root(of: Self.previousName, in: directory) != nil
        try directory.rename(
          Self.nextName, to: directory, Self.previousName,
          flags: UInt32(isThere ? CLX_RENAME_EXCHANGE : CLX_RENAME_NOREPLACE))
        try directory.synchronize(dataOnly: false)
      }
    }
    remove(Self.nextName, in: directory)
    try stored { () throws(StoreError) in try registry.finishSystem() }
    return try self.versions()
  }

  /// Opens `state/system`, in which nothing is half done then.
  private func recovered() throws(SystemFailure) -> OwnedFD {
    let directory = try attempting("open", path) { () throws(Errno) in
      try store.state.openDirectory(Self.directoryName, makingWith: 0o700)
    }
    guard let next = try versions().next else {
      remove(Self.nextName, in: directory.fd)
      return directory
    }
    if Self.root(of: Self.treeName, in: store.tree) == next.root {
      _ = try reconcile(directory.fd)
    } else {
      remove(Self.nextName, in: directory.fd)
      try stored { () throws(StoreError) in try registry.abandonSystem() }
    }
    return directory
  }

  /// What is left of it when this is stopped, the next one removes.
  ///
  /// Where others are served, nobody waits for that: whoever has a file of it open may hold that in the
  /// kernel. In the same directory, as ``Store/removeLeft()`` says of its own.
  private func remove(_ name: String, in directory: FD) {
    try? name.withName { (name) throws(Errno) in
      try directory.rename(name, to: directory, Store.newNameAside(), flags: UInt32(CLX_RENAME_NOREPLACE))
    }
    guard let left = try? directory.entries().map(\.name).filter(Store.isAside),
      let own = try? directory.duplicated()
    else { return }
    try? Leftovers.ofProcess.remove(left, from: own) { (directory, name) throws(Errno) in
      try directory.removeTree(name)
    }
  }

  /// The digest of the seal that lies in a tree, empty for one without; nil if there is no such tree.
  private static func root(of name: String, in parent: FD) -> [UInt8]? {
    guard let tree = try? parent.openDirectory(name) else { return nil }
    guard let signature = try? tree.fd.openDirectory(SystemSeal.directoryName),
      let seal = try? signature.fd.contents(of: SystemSeal.sealName, limit: SystemSeal.maximumSize + 1)
    else { return [] }
    return (try? SystemSeal.rootHash(of: seal)) ?? []
  }
}

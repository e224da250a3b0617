// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import CLinux
internal import LinuxIO
internal import Store

/// A copy of a tree that is to be the system domain, where nobody sees it; what is not placed goes with this
/// object.
final class StagedSystem {
  private let store: Store
  private let source: String
  private let staging: OwnedFD
  private let workshop: Workshop
  private let name: String
  private var isThere = true

  /// Copies it as it is; all of it is the store's owner's then.
  init(
    _ tree: FD, named source: String, in store: Store, _ progress: @escaping (TreeCopy.Count) -> Void
  ) throws(SystemFailure) {
    self.store = store
    self.source = source
    staging = try stored { () throws(StoreError) in try store.openStaging() }
    workshop = Workshop(directory: staging.fd, prefix: "system-")
    name = workshop.newName()
    let (workshop, name) = (workshop, name)
    try attempting("clear", store.path) { () throws(Errno) in
      try workshop.clear { (directory, name) throws(Errno) in try directory.removeTree(name) }
    }
    let owner = try attempting("examine", store.path) { () throws(Errno) in try store.directory.status() }
    var rules = DataCopy.Rules(from: .package, to: .package)
    rules.owner = (owner.st_uid, owner.st_gid)
    rules.keepsSecurity = false
    rules.keepsSetID = true
    rules.emptiness = .refused
    rules.depth = 100
    rules.progress = progress
    let copy = DataCopy(rules)
    var failure: TreeCopyFailure?
    try attempting("copy", source) { () throws(Errno) in
      try name.withName { (name) throws(Errno) in
        do throws(TreeCopyFailure) {
          try copy.copy(tree: tree, to: name, in: workshop.directory)
        } catch {
          failure = error
        }
      }
    }
    if let failure {
      remove()
      throw .notCopied(path: source, failure)
    }
  }

  deinit { remove() }

  private func remove() {
    if isThere { try? workshop.directory.removeTree(name) }
    isThere = false
  }

  func withDirectory<Result>(_ body: (FD) throws(SystemFailure) -> Result) throws(SystemFailure) -> Result {
    let directory = try attempting("open the copy of", source) { () throws(Errno) in
      try workshop.directory.openDirectory(name)
    }
    return try body(directory.fd)
  }

  /// Gives everything the owner that is sealed, makes sure that all is as it is sealed, and forces it to
  /// disk.
  func finish(_ seal: SystemSeal) throws(SystemFailure) {
    let owner = try attempting("examine", store.path) { () throws(Errno) in try store.directory.status() }
    try withDirectory { (top) throws(SystemFailure) in
      for entry in seal.entries where entry.uid != 0 || entry.gid != 0 {
        guard store.description.mode == .system else { throw .ownersInRootlessStore(path: source) }
        try attempting("set the owner of", entry.text) { () throws(Errno) in
          try Self.give(
            entry, in: top, uid: entry.uid == 0 ? owner.st_uid : entry.uid,
            gid: entry.gid == 0 ? owner.st_gid : entry.gid)
        }
      }
      try attempting("complete", source) { () throws(Errno) in try Self.normalizeSignature(in: top) }
      let findings: [SystemFinding]
      do throws(SystemSealFailure) {
        findings = try seal.findings(in: top, .installed(uid: owner.st_uid, gid: owner.st_gid))
      } catch {
        throw .notSealable(path: source, error)
      }
      guard findings.isEmpty else { throw .differs(path: source, findings) }
      try attempting("write to disk", source) { () throws(Errno) in try top.synchronizeFilesystem() }
    }
  }

  /// Gives it its name among the store's own files.
  func place(as newName: String, in parent: FD) throws(Errno) {
    try workshop.directory.rename(name, to: parent, newName, flags: UInt32(CLX_RENAME_NOREPLACE))
    isThere = false
    try parent.synchronize(dataOnly: false)
  }

  private static func give(_ entry: SystemSeal.Entry, in top: FD, uid: UInt32, gid: UInt32) throws(Errno) {
    var names = entry.path.split(separator: UInt8(ascii: "/")).map { Array($0) }
    guard let last = names.popLast() else { return try top.changeOwner(uid: uid, gid: gid) }
    let parent = try top.openDirectory(at: names)
    let object = try parent.fd.child(last)
    try object.fd.changeOwner(uid: uid, gid: gid)
    // A change of owner takes bits of the mode away.
    if case .link = entry.kind { return }
    try object.fd.changeMode(entry.mode)
  }

  /// What is not sealed has one form.
  private static func normalizeSignature(in top: FD) throws(Errno) {
    let directory = try top.openDirectory(SystemSeal.directoryName)
    try directory.fd.changeMode(0o755)
    for name in [SystemSeal.sealName, SystemSeal.signatureName] {
      let file = try directory.fd.child(name)
      try file.fd.changeMode(0o644)
    }
  }
}

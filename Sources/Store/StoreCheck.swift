// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy

/// One thing that `insula check` looked at and did not like.
package struct Finding: Codable, Equatable, Sendable {
  /// How bad it is.
  package enum Severity: String, Codable, Sendable {
    /// It works, and someone should know.
    case warning
    /// Something is missing or wrong.
    case failure
  }

  package let severity: Severity
  package let path: String
  package let problem: String
  package let advice: String
  /// Whether `--repair` has put it right.
  package var repaired = false

  package init(severity: Severity, path: String, problem: String, advice: String) {
    self.severity = severity
    self.path = path
    self.problem = problem
    self.advice = advice
  }
}

/// The same where bundles have findings too.
package typealias StoreFinding = Finding

/// Looks whether a store is whole; puts right what can be put right without guessing.
package struct StoreCheck: Sendable {
  let store: Store
  let repairing: Bool
  /// The standard directories of homes, which were looked at with these.
  var homeDirectories: Set<[[UInt8]]> = []
  private let owners: StoreLayout.Ownership
  /// How many objects of the place that is walked have an ACL of the backing filesystem's own.
  var backingACLs = 0
  package internal(set) var findings: [Finding] = []

  /// Repairing needs the store to itself: open it exclusively.
  package init(_ store: Store, repairing: Bool) throws(StoreError) {
    self.store = store
    self.repairing = repairing
    do throws(Errno) {
      let status = try store.directory.status()
      owners = StoreLayout.Ownership(store.description, uid: status.st_uid, gid: status.st_gid)
    } catch {
      throw StoreError(error, doing: "examine", path: store.path)
    }
  }

  /// Runs all checks; what they find is in ``findings``.
  package mutating func run() throws(StoreError) {
    checkAdminGroup()
    checkDoor()
    checkPrivateDirectories()
    checkSkeleton()
    checkStrays()
    try checkHomes()
    checkApps()
    checkMounts()
    do throws(Errno) { try checkNodes() } catch {
      throw StoreError(error, doing: "walk through", path: store.path + "/tree")
    }
    checkHomesElsewhere()
  }

  mutating func found(
    _ severity: Finding.Severity, _ path: String, _ problem: String, _ advice: String,
    repair: (() throws(Errno) -> Void)? = nil
  ) {
    var finding = Finding(severity: severity, path: path, problem: problem, advice: advice)
    if repairing, let repair { finding.repaired = (try? repair()) != nil }
    findings.append(finding)
  }

  private mutating func checkAdminGroup() {
    let group = store.description.adminGroup
    guard store.description.mode == .system, AccountGroup.numbered(group.gid) == nil else { return }
    found(
      .warning, store.path,
      "has the admin group \(group.name) (\(group.gid)), which this machine does not have",
      "create it with 'groupadd -g \(group.gid) \(group.name)'")
  }

  private mutating func checkDoor() {
    let directory = store.directory
    let repair = { () throws(Errno) in try directory.changeMode(0o700) }
    for finding in store.doorFindings {
      found(
        .failure, finding.path, finding.words, finding.advice, repair: finding.isMendable ? repair : nil)
    }
  }

  private mutating func checkPrivateDirectories() {
    for name in StoreLayout.privateDirectories {
      check(
        name, in: store.directory, path: "\(store.path)/\(name)", mode: 0o700, uid: owners.uid,
        gid: owners.gid)
    }
  }

  private mutating func checkSkeleton() {
    let tree = store.path + "/tree"
    let isSealed = hasSealedSystem
    for directory in DomainTree.directories {
      let path = "\(tree)/\(directory.path)"
      let (above, name) = directory.path.splitAtName
      // Nothing can be added to what is sealed, and a tree that was signed earlier is whole without it.
      if isSealed, directory.isOptional, (try? store.tree.status(at: directory.path)) == nil { continue }
      guard let parent = try? store.tree.openDirectory(at: above) else {
        // Its parent was reported, and could not be put right.
        found(
          .failure, path, "can't be reached: its parent directory is missing or not a directory",
          "repair the parent directory first")
        continue
      }
      check(
        name, in: parent.fd, path: path, mode: directory.mode, uid: owners.uid,
        gid: owners.gid(of: directory.group), isOptional: directory.isOptional)
      checkFlags(of: directory, in: parent.fd, path)
    }
  }

  private mutating func checkFlags(of directory: StandardDirectory, in parent: FD, _ path: String) {
    guard !directory.flags.isEmpty, let object = try? parent.openDirectory(directory.path.splitAtName.name),
      owners.lacksFlags(directory.flags, object.fd)
    else { return }
    let owners = owners
    let fd = object.fd
    found(
      .warning, path, "lacks the flag \(directory.flags.words), as in stores of earlier versions",
      "'insula check --repair' sets it; it only keeps the directory from being shown by 'insula ls --finder'"
    ) { () throws(Errno) in try owners.setFlags(directory.flags, on: fd) }
  }

  /// What lies where insula puts nothing, and nobody can put anything while the store is mounted.
  private mutating func checkStrays() {
    let own = Set(StoreLayout.privateDirectories + [StoreLayout.descriptionName, "tree", "lost+found"])
    let top = Set(DomainTree.directories.compactMap { $0.path.parts(between: "/").first.map(String.init) })
    for (directory, known, path, what) in [
      (store.directory, own, store.path, "is not part of a store"),
      (
        store.tree, top, store.path + "/tree",
        "is in the root of the tree, which has only its standard directories"
      ),
    ] {
      guard let listing = try? directory.reopened(O_RDONLY | O_DIRECTORY),
        let entries = try? listing.fd.entries()
      else { continue }
      for name in entries.map({ String(decoding: $0.name, as: UTF8.self) }).inOrder(by: <)
      // What was being written when a process was stopped is written again by the next.
      where !known.contains(name) && !(name.hasPrefix(".") && path == store.path) {
        found(.warning, "\(path)/\(name)", what, "move it elsewhere; insula does not use it")
      }
    }
  }

  /// A standard directory must be there, be a directory, and have its owner and mode.
  private mutating func check(
    _ name: String, in parent: FD, path: String, mode: UInt32, uid: UInt32, gid: UInt32,
    isOptional: Bool = false
  ) {
    let repair = { () throws(Errno) in
      try StoreLayout.makeDirectory(name, in: parent, mode: mode, uid: uid, gid: gid)
    }
    let status: FileStatus
    do throws(Errno) {
      status = try parent.status(of: name)
    } catch {
      guard error == .ENOENT else {
        return found(.failure, path, "can't be examined: \(error.message)", "check the disk")
      }
      return found(
        isOptional ? .warning : .failure, path,
        isOptional ? "is missing, as in stores of earlier versions" : "is missing",
        "'insula check --repair' creates it", repair: repair)
    }
    guard status.isDirectory else {
      return found(
        .failure, path, "is not a directory",
        "move it away; then 'insula check --repair' creates the directory"
      )
    }
    if status.st_uid != uid || status.st_gid != gid {
      found(
        .failure, path, "belongs to \(status.st_uid):\(status.st_gid) instead of \(uid):\(gid)",
        "'insula check --repair' restores the owner", repair: repair)
    }
    if status.permissions != mode {
      found(
        .failure, path, "has mode \(octal(status.permissions)) instead of \(octal(mode))",
        "'insula check --repair' restores the mode", repair: repair)
    }
  }

  private mutating func checkMounts() {
    guard let table = try? MountTable.current() else { return }
    for mount in table.below(store.path + "/tree") {
      found(
        .failure, mount.mountPoint, "is a mount of another filesystem (\(mount.type)) inside the store",
        "run 'umount \(mount.mountPoint)', and mount it elsewhere")
    }
  }

  mutating func checkLeftover(_ entry: DeepWalk.Entry, in tree: CheckedPlace) {
    guard let process = Homes.unfinished(entry.name) else { return }
    let access = SecurityAccess.store(Metadata(isSystem: store.description.mode == .system))
    let (name, directory) = (entry.name, entry.directory)
    found(
      .warning, tree.text(entry.path), "is a remainder of an 'insula user' command that was interrupted",
      "'insula check --repair' removes it, as does the next 'insula user add' or 'insula user remove'"
    ) { () throws(Errno) in
      guard ProcessID.isGone(process) else { throw .EBUSY }
      try access.removeTree(name, in: directory)
    }
  }

  func octal(_ mode: UInt32) -> String { "0" + String(mode, radix: 8) }
}

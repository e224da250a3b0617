// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// Root's restore: each home by a process of its owner's, and what belongs to nobody's home by root itself.
struct EverythingRestore {
  let snapshot: SnapshotRestore
  let choice: HomeRestore.Choice
  let mountPoint: String
  let context: Context

  /// `words` is the command that a user carries out, by the path of what was brought back.
  func run(_ words: (String) -> [String]) throws -> ExitCode {
    let access = try AppsAccess.find(mountPoint, context)
    var code = ExitCode.ok
    /// Nobody's files keep others from getting theirs back.
    func goOn(after what: String, _ body: () throws -> ExitCode) {
      do {
        let ended = try body()
        if ended != .ok { code = ended }
      } catch {
        let failure = CommandFailure(error)
        context.console.note("\(what) was not restored: \(failure.message)", failure.lines)
        code = .failed
      }
    }
    // First, since nothing can be restored where this fails.
    let homes = try snapshot.homes()
    if choice.apps.isEmpty { goOn(after: "what all users share") { try restoreShared(access) } }
    for name in homes {
      guard let account = Account.named(name), (try? access.home(of: account.uid)) != nil else {
        context.console.note(
          "the home of \(name.sanitized) was left out: there is no such user, or no home that is there; "
            + "'insula user add' makes it, and 'insula user list' says whether it is away")
        code = .failed
        continue
      }
      goOn(after: "the home of \(name.sanitized)") {
        try restore(home: "Users/\(name)", of: account, words)
      }
    }
    return code
  }

  /// Brings back a home, and has its owner go on with it.
  ///
  /// A snapshot may contain programs that run as root, and devices. So where the owner can reach it, in a
  /// namespace of mounts that nobody else is in, it has none: elsewhere it lies behind a directory of root's.
  func restore(home: String, of account: Account, _ words: (String) -> [String]) throws -> ExitCode {
    let name = home.splitAtName.name
    return try snapshot.bringBack(parts: ["Users/\(name)"]) { place, path in
      // Throws for what is no backup, before anything is anybody's.
      let backup = try RestoredBackup(path, context)
      defer { _ = umount2(place.path, Int32(CLX_MNT_DETACH)) }
      let end: Subprocess.End
      do {
        try Self.reduce(backup, toHome: name)
        let others = try Self.hand(path, of: backup, home: name, in: place, to: account)
        others.acls.tell(context.console)
        let left = others.removed
        if left.count > 0 {
          context.console.note(
            "what others have in the home of \(account.name.sanitized) was left out, since it may be theirs "
              + "alone: \(left.words.sanitized); 'restic restore' brings it back")
        }
        let words = ["insula"] + words(place.path).inserting(["--user", account.name])
        // In a session of its own: what is theirs can't type into our terminal.
        let output = try Self.onlyForWriting(FD(STDOUT_FILENO))
        let errors = try Self.onlyForWriting(FD(STDERR_FILENO))
        let streams = [(output.fd, STDOUT_FILENO), (errors.fd, STDERR_FILENO)]
        let pid = try HelperProcess.start { () throws(Errno) in
          try Subprocess.spawn(
            "/proc/self/exe", words, context, descriptors: streams, inOwnSession: true)
        }
        end = try HelperProcess.wait(for: pid) {
          context.console.note(
            "another process of \(account.name.sanitized) has taken over the one that restores")
        }
      } catch let error as Errno {
        throw CommandFailure(error, "can't restore \(home.sanitized): \(error.message)")
      }
      if case .exited(let status) = end { return ExitCode(rawValue: status) ?? .failed }
      context.console.note("the restore of \(home.sanitized) \(end.words)")
      return .failed
    }
  }

  /// Asks once, for all that is to come.
  func ask() throws {
    if !choice.replaces { try HomeRestore.ask(context, "what is there of the same names") }
  }

  /// A copy of a stream: who has a terminal open for reading gets what is typed there for others.
  private static func onlyForWriting(_ stream: FD) throws(Errno) -> OwnedFD {
    isatty(stream.raw) == 1 ? try stream.reopened(O_WRONLY | O_NOCTTY) : try stream.duplicated()
  }

  /// Takes out what is not for the owner of a home: what other users have allowed, their apps, and databases
  /// that have no place in the tree, where it is seen whose what is.
  static func reduce(_ backup: RestoredBackup, toHome name: String) throws(Errno) {
    let owner = (try? backup.tree.fd.status(at: "Users/\(name)"))?.st_uid
    let manifest = backup.manifest.reduced(toHome: name, ownedBy: owner)
    let top = backup.directory.fd
    try top.remove(BackupManifest.name, directory: false)
    let file = try top.open(BackupManifest.name, O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
    try file.fd.writeAll(manifest.encoded)
    do throws(Errno) { try top.removeTree(Array(BackupManifest.databasesName.utf8)) } catch {
      if error != .ENOENT { throw error }
    }
    let bundles: OwnedFD
    do throws(Errno) { bundles = try top.openDirectory(BackupManifest.bundlesName) } catch {
      if error == .ENOENT { return }
      throw error
    }
    let own = Set(manifest.apps.map { Array("\($0.seal).app".utf8) })
    for entry in try bundles.fd.entries() where !own.contains(entry.name) {
      try bundles.fd.removeTree(entry.name)
    }
  }

  private static func hand(
    _ path: String, of backup: RestoredBackup, home: String, in place: UnpackingPlace, to account: Account
  ) throws(Errno) -> OthersFiles {
    try OwnNamespace.enterMounts()
    let top = try FD.cwd.openWithoutLinks(path, O_RDONLY | O_DIRECTORY)
    let mount = try DetachedMount.copy(
      of: top.fd, adding: [.readOnly, .noSetUserID, .noDevices, .noPrograms])
    let left = try OthersFiles(removedFrom: backup, home: home) { (object, status) throws(Errno) in
      try ClosedMode.open(object, status)
      try object.changeOwner(uid: account.uid, gid: account.gid)
    }
    let tree = [Array(BackupManifest.treeName.utf8)]
    try give(top.fd, to: account, butNot: tree + ["Users", home].map { Array($0.utf8) })
    try top.fd.changeMode(0o700)
    // Its own descriptor is of the namespace before.
    let over = try FD.cwd.openFollowing(place.path, pathOnly | O_DIRECTORY)
    guard try over.fd.status().st_ino == place.directory.status().st_ino else { throw .ESTALE }
    try mount.fd.attach(over: over.fd)
    return left
  }

  /// Makes all of a tree that nobody else can reach somebody's.
  ///
  /// What is neither a file nor a directory nor a link goes. `given` is a directory that is theirs already.
  private static func give(
    _ directory: FD, to account: Account, butNot given: [[UInt8]]
  ) throws(Errno) {
    var pending: [[[UInt8]]] = [[]]
    while let path = pending.popLast() {
      let opened = try directory.openDirectory(at: path)
      for entry in try opened.fd.entries() where path + [entry.name] != given {
        let child = try opened.fd.child(entry.name)
        let status = try child.fd.status()
        if status.isDirectory {
          pending.append(path + [entry.name])
        } else if !status.isRegular, !status.isSymlink {
          try opened.fd.remove(entry.name, directory: false)
          continue
        }
        try child.fd.changeOwner(uid: account.uid, gid: account.gid)
      }
    }
    try directory.changeOwner(uid: account.uid, gid: account.gid)
  }

  /// What is in the tree and nobody's home.
  private func restoreShared(_ access: any StoreAccess) throws -> ExitCode {
    try snapshot.bringBack(parts: ["Library", "Users/\(BackupSet.shared)"]) { _, path in
      let backup = try RestoredBackup(path, context)
      do throws(Errno) { try ForeignACLs(removedFrom: backup.tree.fd).tell(context.console) } catch {
        throw CommandFailure(error, "can't look at what all users share: \(error.message)")
      }
      let missing = try AppRestore(backup: backup, access: access, bundles: choice.bundles)
        .install(backup.manifest.apps, for: nil, home: nil)
      let root = try context.openDirectory(mountPoint)
      let (source, target) = (backup.tree.fd, root.fd)
      let done = CopyProgress.show("restoring what all users share", context.console) { note in
        let restorer = PlaceRestorer(.mount, keepingOwners: true, progress: note, step: Self.step)
        restorer.restore(source, to: target, isRehearsal: false)
        return restorer
      }
      for omission in done.omissions { context.console.note("\(omission.path): \(omission.reason)") }
      let failed =
        missing.map { "\($0.identifier.sanitized): \($0.reason)" }
        + done.failures.map { "\($0.path): \($0.reason)" }
      context.console.say(
        "Restored \(DataReport(count: done.count).words) that all users share.")
      if failed.isEmpty { return .ok }
      context.console.note("This was not restored:", failed.map { "  \($0)" })
      return .failed
    }
  }

  /// Only what is nobody's home: in directories of the tree that are always there, and stay as they are.
  private static func step(_ names: [[UInt8]]) -> PlaceRestorer.Step {
    let path = names.map { String(decoding: $0, as: UTF8.self) }
    switch path.first {
    case "Users":
      if path.count == 1 { return .fill }
      guard path[1] == BackupSet.shared else { return .skip }
      return path.count == 2 ? .fill : .replace
    case "Library": return path.count <= 2 ? .fill : .replace
    default: return .skip
    }
  }
}

extension [String] {
  /// With options before the first `--`.
  fileprivate func inserting(_ options: [String]) -> [String] {
    let index = firstIndex(of: "--") ?? count
    return Array(self[..<index]) + options + Array(self[index...])
  }
}

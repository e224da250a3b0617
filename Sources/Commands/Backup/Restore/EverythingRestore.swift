// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// Root's restore: each home by a process of its owner's, and what belongs to nobody's home by one of root's.
///
/// Who holds a file keeps whoever replaces it waiting. That holds up no other home.
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
    var homes = try snapshot.homes()[...]
    var count = 0
    /// Begins with the next home, also while others do not get on; false if that must wait, or there is none.
    func next() -> Bool {
      guard count < Self.mostAtOnce, let name = homes.popFirst() else { return false }
      guard let account = Account.named(name), (try? access.home(of: account.uid)) != nil else {
        context.console.note(
          "the home of \(name.sanitized) was left out: there is no such user, or no home that is there; "
            + "'insula user add' makes it, and 'insula user list' says whether it is away")
        code = .failed
        return true
      }
      count += 1
      goOn(after: "the home of \(name.sanitized)") {
        try restore(home: "Users/\(name)", of: account, words, meanwhile: next)
      }
      count -= 1
      return true
    }
    if choice.apps.isEmpty {
      goOn(after: "what all users share") { try restoreShared(words, meanwhile: next) }
    }
    while next() {}
    return code
  }

  /// How many homes are restored at once where they do not get on: each takes room in TMPDIR.
  private static let mostAtOnce = 8

  /// Brings back a home, and has its owner go on with it.
  ///
  /// A snapshot may contain programs that run as root, and devices. So where the owner can reach it, in a
  /// namespace of mounts that nobody else is in, it has none: elsewhere it lies behind a directory of root's.
  func restore(
    home: String, of account: Account, _ words: (String) -> [String], meanwhile: () -> Bool = { false }
  ) throws -> ExitCode {
    let name = home.splitAtName.name
    return try snapshot.bringBack(parts: ["Users/\(name)"]) { place, path in
      // Throws for what is no backup, before anything is anybody's.
      let backup = try RestoredBackup(path, context)
      defer { _ = umount2(place.path, Int32(CLX_MNT_DETACH)) }
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
        return try carryOut(
          words(place.path).inserting(["--user", account.name]), for: "the home of \(name.sanitized)",
          by: account.name.sanitized, meanwhile: meanwhile)
      } catch let error as Errno {
        throw CommandFailure(error, "can't restore \(home.sanitized): \(error.message)")
      }
    }
  }

  /// Has a process carry out a command with what was brought back: what holds it up can keep it from ending,
  /// but not us.
  private func carryOut(
    _ words: [String], for what: String, by user: String, meanwhile: () -> Bool
  ) throws(Errno) -> ExitCode {
    let outputs = [try RelayedOutput(FD(STDOUT_FILENO)), try RelayedOutput(FD(STDERR_FILENO))]
    // In a session of its own: what is a user's can't type into our terminal.
    let pid = try outputs[0].give { (output) throws(Errno) in
      try outputs[1].give { (errors) throws(Errno) in
        try HelperProcess.start { () throws(Errno) in
          try Subprocess.spawn(
            "/proc/self/exe", ["insula"] + words, context,
            descriptors: [(output, STDOUT_FILENO), (errors, STDERR_FILENO)], inOwnSession: true)
        }
      }
    }
    var isTold = false
    let end = try HelperProcess.wait(
      for: pid, outputs: outputs, patience: .ofRestores,
      seized: {
        context.console.note("another process of \(user) has taken over the one that restores")
      },
      meanwhile: {
        if !isTold {
          context.console.note("the restore of \(what) does not get on; all else goes on meanwhile")
        }
        isTold = true
        return meanwhile()
      },
      givenUp: {
        context.console.note(
          "the restore of \(what) has not got on for half an hour and is ended; something may hold the files "
            + "that it replaces")
      })
    if case .exited(let status) = end { return ExitCode(rawValue: status) ?? .failed }
    context.console.note("the restore of \(what) \(end.words)")
    return .failed
  }

  /// Asks once, for all that is to come.
  func ask() throws {
    if !choice.replaces { try HomeRestore.askForAll(context) }
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

  /// Brings back what is in the tree and nobody's home, and has another process of root's go on with it.
  private func restoreShared(_ words: (String) -> [String], meanwhile: () -> Bool) throws -> ExitCode {
    try snapshot.bringBack(parts: ["Library", "Users/\(BackupSet.shared)"]) { _, path in
      do throws(Errno) {
        return try carryOut(words(path), for: "what all users share", by: "root", meanwhile: meanwhile)
      } catch {
        throw CommandFailure(error, "can't start: \(error.message)")
      }
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

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Glibc
internal import JSON
internal import LinuxIO
internal import Policy

/// Has restic bring back a backup, or a part of it, into a directory that goes afterwards.
struct SnapshotRestore {
  private let restic: Restic
  private let snapshot: ResticSnapshot
  private let context: Context
  /// Where in the snapshot our own directories are.
  private let top: String

  /// Whether a person has said which one.
  let isNamed: Bool

  /// Whose backup is meant where none is named.
  enum Owner {
    case everybody
    case user(String)

    fileprivate func has(_ snapshot: ResticSnapshot) -> Bool {
      let user = SnapshotTag.user(snapshot.tags ?? [])
      switch self {
      case .everybody: return user == nil
      case .user(let name): return user?.hasSameBytes(as: name) ?? true
      }
    }
  }

  /// Finds the backup that is meant.
  init(
    _ restic: Restic, _ id: String?, of owner: Owner, _ apps: [AppReference], _ context: Context
  ) throws {
    let all = try restic.snapshots()
    isNamed = id != nil && id != "latest"
    let found: ResticSnapshot?
    if let id, isNamed {
      let matching = all.filter { $0.id.hasPrefix(id) }
      guard matching.count < 2 else {
        throw CommandFailure(
          .failed, "several backups begin with '\(id)'; give more digits of the one that you mean")
      }
      found = matching.first
    } else {
      let here = hostName()
      // One of some apps alone is the latest only for these.
      found = all.last { snapshot in
        let only = SnapshotTag.apps(snapshot.tags ?? [])
        let hasApps =
          only.isEmpty
          || (!apps.isEmpty
            && apps.allSatisfy { app in
              let name = app.fixedIdentifier?.text ?? app.text
              return only.contains { $0.lowercased() == name.lowercased() }
            })
        return hasApps && snapshot.hostname == here && owner.has(snapshot)
      }
    }
    guard let found else {
      throw CommandFailure(
        .failed,
        isNamed
          ? "there is no backup '\(id ?? "")' of insula's in \(restic.repository.shown)"
          : "there is no backup of insula's in \(restic.repository.shown) that was made on this machine "
            + "for you; name one to restore another",
        lines: ["  'insula backup list' lists the backups"])
    }
    // Whoever can write to the repository may have put anything there.
    guard let top = found.paths.first, found.paths.count == 1, Self.isPlain(top),
      found.id.utf8.allSatisfy(\.isLowercaseHexadecimal)
    else {
      throw CommandFailure(
        .failed,
        "insula has not made the backup \(found.shortID.sanitized): it is of '\(found.paths.first ?? "")'")
    }
    (self.restic, snapshot, self.top, self.context) = (restic, found, top, context)
    context.console.inform(
      "restoring the backup \(found.shortID) of \(found.moment), made on \(found.hostname)")
  }

  /// Whether a path leads from the root to a directory below it, by names that mean nothing else.
  private static func isPlain(_ path: String) -> Bool {
    let names = path.parts(between: "/", keepingEmpty: true).dropFirst()
    return path.begins(with: "/") && !names.isEmpty
      && names.allSatisfy { !$0.isEmpty && $0 != "." && $0 != ".." && !$0.utf8.contains(0) }
  }

  /// The homes that are in it.
  func homes() throws -> [String] {
    let place = "\(top)/\(BackupManifest.treeName)/Users"
    var names: [String] = []
    let outcome = try restic.run(["ls", "--json", "--", snapshot.id, place]) { line in
      guard let node = try? JSONText.decode(ResticNode.self, from: line), node.type == "dir",
        let path = node.path,
        path.utf8.starts(with: "\(place)/".utf8)
      else { return }
      let name = String(path.dropFirst(place.count + 1))
      if !name.isEmpty, !name.utf8.contains(UInt8(ascii: "/")), name != BackupSet.shared {
        names.append(name)
      }
    }
    guard outcome.isDone else { throw restic.failure("list the backup", outcome) }
    // Two accounts may have names that differ in the spelling of a letter alone.
    return Set(names.map { Array($0.utf8) }).map { String(decoding: $0, as: UTF8.self) }.inOrder(by: <)
  }

  /// Brings back the manifest, the apps and a part of the tree, and lends the directory that they are in.
  ///
  /// `parts` are paths in the tree; all of it without any. Nothing else is in that directory, which is ours
  /// alone. What can't be brought back is named; all else is restored.
  func bringBack(
    parts: [String]? = nil, _ body: (UnpackingPlace, _ path: String) throws -> ExitCode
  ) throws -> ExitCode {
    try requireSafeDirectory()
    let place = try UnpackingPlace(context, for: "restore")
    return try place.use {
      try check(place.directory)
      let tree = "\(top)/\(BackupManifest.treeName)"
      let wanted =
        parts.map { parts in
          ["\(top)/\(BackupManifest.name)", "\(top)/\(BackupManifest.bundlesName)"]
            + parts.flatMap { ["\(tree)/\($0)", "\(top)/\(BackupManifest.databasesName)/\($0)"] }
        } ?? []
      let hasHoles = try restic.bringsBackHoles()
      if !hasHoles { try requireRoom(for: wanted, in: place) }
      // One level deeper, so that the directory that others can't enter is always above.
      let inner = try place.directory.openDirectory(Self.innerName, makingWith: 0o700)
      let target = "\(place.path)/\(Self.innerName)"
      // By a path that is short: those that it had when it was read may be as long as paths can be.
      let words =
        ["restore", "--target", Restic.givenPath] + (hasHoles ? ["--sparse"] : [])
        + wanted.flatMap { ["--include", Restic.pattern($0)] } + ["--", snapshot.id]
      var unrestored = UnrestoredFiles()
      let outcome = try ProgressLine.show(context.console, { "bringing back what is in the backup" }) {
        try restic.run(words, directory: inner.fd, message: { unrestored.take($0) })
      }
      guard outcome.isDone || unrestored.areAll(of: outcome) else {
        let failure = restic.failure("bring back the backup into \(place.path)", outcome)
        throw CommandFailure(
          failure.code, failure.message,
          lines: failure.lines + ["  nothing was changed; TMPDIR can name another directory with more room"])
      }
      let backup = try context.openDirectory(target + top)
      // Root reads all, and opens a home when it is its owner's.
      if !context.isRoot { try ClosedMode.open(tree: backup.fd) }
      try unrestored.remove(from: backup.fd, at: top)
      unrestored.tell(context.console)
      RestoredDatabases.putInPlace(in: backup.fd, at: target + top, context)
      let code = try body(place, target + top)
      return code == .ok && unrestored.count > 0 ? .failed : code
    }
  }

  /// Throws if what is wanted of a backup is more than there is room for, also with its holes filled.
  private func requireRoom(for wanted: [String], in place: UnpackingPlace) throws {
    var needed: Int64 = 0
    var objects: Set<Int> = []
    let outcome = try restic.run(["ls", "--json", "--recursive", "--", snapshot.id] + wanted) { line in
      guard let node = try? JSONText.decode(ResticNode.self, from: line), node.type == "file",
        objects.insert(node.object).inserted
      else { return }
      needed = needed.adding(clamped: max(node.size ?? 0, 0))
    }
    guard outcome.isDone else { throw restic.failure("list the backup", outcome) }
    let status = try place.directory.filesystemStatus()
    let free = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
    guard !free.overflow, needed > Int64(clamping: free.partialValue) else { return }
    throw CommandFailure(
      .failed,
      "there is too little room in \(context.unpackingDirectory.sanitized): it takes "
        + "\(Int(clamping: needed).asSize), and \(Int(clamping: free.partialValue).asSize) are free",
      lines: [
        "  nothing was changed; TMPDIR can name another directory with more room",
        "  where files have large holes, restic takes no room for these from version 0.15 on",
      ])
  }

  private static let innerName = "restored"

  /// Throws where others could put something else in the place of what restic writes, or where it would be
  /// backed up.
  private func requireSafeDirectory() throws {
    let base = context.absolute(context.unpackingDirectory)
    func refuse(_ why: String) -> CommandFailure {
      CommandFailure(
        .failed, "can't restore by way of \(base.sanitized): \(why); set TMPDIR to another directory")
    }
    if DaemonSearch.mount(containing: base) != nil { throw refuse("it is in an insula mount") }
    var path = ""
    for name in [""] + base.parts(between: "/").map(String.init) {
      path += name.isEmpty ? "" : "/" + name
      guard let directory = try? FD.cwd.openWithoutLinks(path.isEmpty ? "/" : path, pathOnly | O_DIRECTORY),
        let status = try? directory.fd.status()
      else { throw refuse("it can't be opened") }
      let isOurs = status.st_uid == 0 || status.st_uid == context.uid
      guard isOurs, status.permissions & 0o022 == 0 || status.permissions & 0o1000 != 0 else {
        throw refuse("others can rename what is in \(path.isEmpty ? "/" : path)")
      }
    }
  }

  /// Throws where ACLs and flags would be lost on the way.
  private func check(_ directory: FD) throws {
    do throws(Errno) {
      try AttributesCopy.set("user.org.insula.flags", to: [], on: directory)
    } catch {
      throw CommandFailure(
        error,
        "the filesystem of \(context.unpackingDirectory) has no attributes of users, so ACLs and flags "
          + "would be lost; TMPDIR can name another directory")
    }
  }
}

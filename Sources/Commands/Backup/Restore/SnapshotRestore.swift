// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

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

  /// Finds the backup that is meant.
  init(_ restic: Restic, _ id: String?, _ apps: [AppReference], _ context: Context) throws {
    let all = try restic.snapshots()
    let found: ResticSnapshot?
    if let id, id != "latest" {
      let matching = all.filter { $0.id.hasPrefix(id) }
      guard matching.count < 2 else {
        throw CommandFailure(
          .failed, "several backups begin with '\(id)'; give more digits of the one that you mean")
      }
      found = matching.first
    } else {
      // One of some apps alone is the latest only for these.
      found = all.last { snapshot in
        let only = SnapshotTag.apps(snapshot.tags ?? [])
        return only.isEmpty
          || (!apps.isEmpty
            && apps.allSatisfy { app in only.contains { $0.lowercased() == app.text.lowercased() } })
      }
    }
    guard let found, let top = found.paths.first, found.paths.count == 1 else {
      throw CommandFailure(
        .failed,
        id.map { "there is no backup '\($0)' of insula's in \(restic.repository.shown)" }
          ?? "there is no backup of insula's in \(restic.repository.shown) yet",
        lines: ["  'insula backup list' lists the backups"])
    }
    (self.restic, snapshot, self.top, self.context) = (restic, found, top, context)
    context.console.inform(
      "restoring the backup \(found.shortID) of \(found.moment), made on \(found.hostname)")
  }

  /// The homes that are in it.
  func homes() throws -> [String] {
    let place = "\(top)/\(BackupManifest.treeName)/Users"
    var names: [String] = []
    let outcome = try restic.run(["ls", "--json", snapshot.id, place]) { line in
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
    return Array(Set(names)).sorted()
  }

  /// Brings back the manifest, the apps and a part of the tree, and lends the directory that they are in.
  ///
  /// `parts` are paths in the tree; all of it without any. Nothing else is in that directory, which is ours
  /// alone.
  func bringBack<Result>(parts: [String]? = nil, _ body: (UnpackingPlace, _ path: String) throws -> Result)
    throws
    -> Result
  {
    let place = try UnpackingPlace(context, for: "restore")
    return try place.use {
      try check(place.directory)
      let tree = "\(top)/\(BackupManifest.treeName)"
      let wanted =
        parts.map { parts in
          ["\(top)/\(BackupManifest.name)", "\(top)/\(BackupManifest.bundlesName)"]
            + parts.map { "\(tree)/\($0)" }
        } ?? []
      let words =
        ["restore", snapshot.id, "--target", place.path] + wanted.flatMap { ["--include", Self.pattern($0)] }
      let outcome = try ProgressLine.show(context.console, { "bringing back what is in the backup" }) {
        try restic.run(words)
      }
      guard outcome.isDone else {
        let failure = restic.failure("bring back the backup into \(place.path)", outcome)
        throw CommandFailure(
          failure.code, failure.message,
          lines: failure.lines + ["  nothing was changed; TMPDIR can name another directory with more room"])
      }
      return try body(place, "\(place.path)\(top == "/" ? "" : top)")
    }
  }

  func bringBack<Result>(home: String?, _ body: (String) throws -> Result) throws -> Result {
    try bringBack(parts: home.map { ["Users/\($0)"] }) { try body($1) }
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

  /// A name as a pattern that stands for it alone.
  private static func pattern(_ path: String) -> String {
    path.reduce(into: "") { text, character in
      if "*?[]\\".contains(character) { text.append("\\") }
      text.append(character)
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// Databases that a backup has as of one moment, and that take the place of what was read of them piece by
/// piece.
///
/// Whoever made the backup may be hostile: names are followed one by one, no link is, and only files take
/// the place of files.
enum RestoredDatabases {
  private static let mostNames = 20

  /// Moves them to where they belong; does nothing where it was done before.
  ///
  /// What can't be moved is restored as it was read, and named: whoever has one such database keeps nobody
  /// from having all else.
  static func putInPlace(in backup: FD, at path: String, _ context: Context) {
    let failed: [String]
    do throws(Errno) { failed = try move(in: backup) } catch {
      failed = ["all of them, in \(path)/\(BackupManifest.databasesName): \(error.message)"]
    }
    guard !failed.isEmpty else { return }
    let more = failed.count > mostNames ? ["  and \(failed.count - mostNames) more"] : []
    context.console.note(
      "these databases of apps that ran are restored as they were read, perhaps amid a change, since they "
        + "can't be moved to their places:", failed.prefix(mostNames).map { "  \($0.sanitized)" } + more)
  }

  /// The answer is what can't be moved.
  static func move(in backup: FD) throws(Errno) -> [String] {
    guard let databases = try? backup.openDirectory(BackupManifest.databasesName) else { return [] }
    let tree = try backup.openDirectory(BackupManifest.treeName)
    var found: Set<[[UInt8]]> = []
    try DeepWalk.through(databases.fd, mostWaiting: 100_000) { (entry) throws(Errno) in
      if entry.type == DT_DIR { return true }
      if try entry.directory.status(of: entry.name).isRegular { found.insert(entry.path) }
      return false
    }
    var failed: [String] = []
    /// Those that are in their places, and whose they are.
    var placed: [[[UInt8]]: UInt32] = [:]
    // A database comes before what is beside it, which has a longer name.
    for path in found.inOrder(by: { ($0.last ?? []).count < ($1.last ?? []).count }) {
      guard let name = path.last else { continue }
      let database: [[UInt8]]? = DatabaseHold.database(ofCompanion: name).map { path.dropLast() + [$0] }
      let isBeside = database.map(found.contains) ?? false
      // Without its database it has no place.
      let owner = isBeside ? database.flatMap { placed[$0] } : nil
      if isBeside, owner == nil { continue }
      do throws(Errno) {
        let source = try databases.fd.openDirectory(at: path.dropLast())
        let target = try tree.fd.openDirectory(at: path.dropLast())
        try whileWritable(target.fd) { () throws(Errno) in
          placed[path] = try put(name, from: source.fd, in: target.fd, besideThatOf: owner)
        }
      } catch {
        // What was excluded from the restore has no place.
        guard error != .ENOENT else { continue }
        let text = path.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/")
        let reason = error == .EPERM ? "the file of that name is another user's" : error.message
        failed.append("\(text): \(reason)")
      }
    }
    return failed.inOrder(by: <)
  }

  /// Does something in a directory that its owner had closed to themselves.
  private static func whileWritable(_ directory: FD, _ body: () throws(Errno) -> Void) throws(Errno) {
    let mode = try directory.status().permissions
    guard mode & 0o300 != 0o300 else { return try body() }
    try directory.changeMode(mode | 0o300)
    defer { try? directory.changeMode(mode) }
    try body()
  }

  /// Puts a database over the file of its owner's that has its name, or `besideThatOf` an owner what belongs
  /// to one; gives the owner.
  ///
  /// In another directory of that name it would be without what protected it.
  private static func put(
    _ name: [UInt8], from source: FD, in target: FD, besideThatOf owner: UInt32?
  ) throws(Errno) -> UInt32 {
    let copy = try source.status(of: name)
    if let owner {
      if let status = try? target.status(of: name), !status.isRegular { throw .EEXIST }
      guard copy.st_uid == owner else { throw .EPERM }
    } else {
      let status = try target.status(of: name)
      guard status.isRegular, status.st_uid == copy.st_uid else { throw .EPERM }
      // They were read at another moment, and would be taken for parts of it.
      for suffix in DatabaseHold.suffixes {
        if (try? target.status(of: name + suffix))?.isRegular == true {
          try target.remove(name + suffix, directory: false)
        }
      }
    }
    try source.rename(name, to: target, name, flags: 0)
    return copy.st_uid
  }
}

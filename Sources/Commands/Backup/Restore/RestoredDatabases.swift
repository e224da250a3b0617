// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Glibc
internal import LinuxIO
internal import Store

/// Databases that a backup has as of one moment, and that take the place of what was read of them piece by
/// piece.
///
/// Whoever made the backup may be hostile: names are followed one by one, no link is, and only files take
/// the place of files.
enum RestoredDatabases {
  /// Moves them to where they belong; does nothing where it was done before.
  static func putInPlace(in backup: FD) throws(Errno) {
    guard let databases = try? backup.openDirectory(BackupManifest.databasesName) else { return }
    let tree = try backup.openDirectory(BackupManifest.treeName)
    var found: Set<[[UInt8]]> = []
    try DeepWalk.through(databases.fd, mostWaiting: 100_000) { (entry) throws(Errno) in
      if entry.type == DT_DIR { return true }
      if try entry.directory.status(of: entry.name).isRegular { found.insert(entry.path) }
      return false
    }
    // A database comes before what is beside it, which has a longer name.
    for path in found.sorted(by: { ($0.last ?? []).count < ($1.last ?? []).count }) {
      guard let name = path.last, let source = try? databases.fd.openDirectory(at: path.dropLast()),
        let target = try? tree.fd.openDirectory(at: path.dropLast())
      else { continue }
      let database = DatabaseHold.database(ofCompanion: name)
      let isBeside = database.map { found.contains(path.dropLast() + [$0]) } ?? false
      try put(name, from: source.fd, in: target.fd, isDatabase: !isBeside)
    }
  }

  private static func put(
    _ name: [UInt8], from source: FD, in target: FD, isDatabase: Bool
  ) throws(Errno) {
    if let status = try? target.status(of: name), !status.isRegular { return }
    if isDatabase {
      // They were read at another moment, and would be taken for parts of it.
      for suffix in DatabaseHold.suffixes {
        if (try? target.status(of: name + suffix))?.isRegular == true {
          try target.remove(name + suffix, directory: false)
        }
      }
    }
    try source.rename(name, to: target, name, flags: 0)
  }
}

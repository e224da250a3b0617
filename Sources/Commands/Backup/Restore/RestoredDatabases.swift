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
    // A database comes before what its own names with an ending are of.
    for path in found.sorted(by: { $0.count != $1.count ? $0.count < $1.count : isBefore($0, $1) }) {
      guard let name = path.last, let source = try? databases.fd.openDirectory(at: path.dropLast()),
        let target = try? tree.fd.openDirectory(at: path.dropLast())
      else { continue }
      try put(name, from: source.fd, in: target.fd, isDatabase: !isCompanion(path, of: found))
    }
  }

  private static func isBefore(_ one: [[UInt8]], _ other: [[UInt8]]) -> Bool {
    for (a, b) in zip(one, other) where a != b { return a.lexicographicallyPrecedes(b) }
    return false
  }

  private static func isCompanion(_ path: [[UInt8]], of found: Set<[[UInt8]]>) -> Bool {
    guard let name = path.last else { return false }
    return DatabaseHold.suffixes.contains { suffix in
      name.suffix(suffix.count).elementsEqual(suffix)
        && found.contains(path.dropLast() + [Array(name.dropLast(suffix.count))])
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

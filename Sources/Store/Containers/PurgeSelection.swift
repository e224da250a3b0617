// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy

/// The files of a directory that were used longest ago, where not all of them have to go.
struct PurgeSelection {
  /// By the directories that they are in, below the one that is looked at.
  private(set) var files: [[[UInt8]]: [[UInt8]]] = [:]

  /// Of more names none is chosen: an app that is started may wait while they are moved.
  private static let most = 10_000

  /// So many of them that `bytes` become free; nil where all may go as well.
  ///
  /// `isBare` says whether no flag can protect what has a name.
  init?(
    freeing bytes: Int64, of directory: FD, owner: UInt32, isBare: (Name, FD) -> Bool, pause: Pause
  ) throws(Errno) {
    var found: [(path: [[UInt8]], used: Int64, bytes: Int64)] = []
    var all = FreedSpace()
    do throws(Errno) {
      try DeepWalk.through(directory) { (entry) throws(Errno) in
        try pause()
        return try entry.name.withName { (name) throws(Errno) in
          if entry.depth == 0, CacheDirectoryTag.isName(entry.name) { return false }
          guard let status = try? entry.directory.status(of: name) else { return false }
          all.add(status)
          guard all.count <= Self.most else { throw .EOVERFLOW }
          guard status.isRegular, status.st_nlink == 1, status.st_uid == owner,
            isBare(name, entry.directory)
          else { return status.isDirectory }
          let used = max(status.st_atim.tv_sec, status.st_mtim.tv_sec)
          found.append((entry.path, Int64(used), max(0, Int64(clamping: status.st_blocks)) * 512))
          return false
        }
      }
    } catch .EOVERFLOW {
      return nil
    }
    guard all.bytes > bytes else { return nil }
    var freed: Int64 = 0
    for file in found.inOrder(by: { $0.used < $1.used }) where freed < bytes {
      guard let name = file.path.last else { continue }
      files[Array(file.path.dropLast()), default: []].append(name)
      freed = freed.adding(clamped: file.bytes)
    }
    // What is left over then is not worth to be spared.
    guard freed >= bytes else { return nil }
  }

  /// Moves the files into a directory, under numbers; who looks at the directories that they were in is told.
  func move(from directory: FD, to target: FD, _ visibly: VisibleChange) throws(Errno) {
    var moved = 0
    for (path, names) in files {
      // What was moved or removed meanwhile is left alone.
      guard let parent = try? directory.openDirectory(at: path) else { continue }
      try visibly(parent.fd) { () throws(Errno) in
        for name in names {
          moved += 1
          do throws(Errno) {
            try parent.fd.rename(name, to: target, "\(moved)", flags: UInt32(CLX_RENAME_NOREPLACE))
          } catch .ENOENT {}
        }
      }
    }
  }
}

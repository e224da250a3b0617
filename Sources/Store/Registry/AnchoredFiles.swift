// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CSQLite
internal import Glibc

/// SQLite's own access to files, save that it takes paths as they are.
///
/// SQLite opens files by path, and resolves all links in it first. That would turn the link to a descriptor
/// (`/proc/self/fd/7/name`) into the path that the directory had at that moment, and walk that from then on;
/// taken as it is, it leads to the very directory that the descriptor stands for, wherever that is now.
enum AnchoredFiles {
  /// What a connection asks for it by.
  static let name = "insula"

  /// Whether SQLite knows it; made so at the first look.
  static let areRegistered: Bool = {
    guard let usual = sqlite3_vfs_find("unix"), let name = strdup(name) else { return false }
    // SQLite keeps both for as long as the process lives.
    let anchored = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    anchored.initialize(to: usual.pointee)
    anchored.pointee.zName = UnsafePointer(name)
    anchored.pointee.pNext = nil
    anchored.pointee.xFullPathname = { _, path, count, result in
      guard let path, let result, strlen(path) < Int(count) else { return SQLITE_CANTOPEN }
      strcpy(result, path)
      return SQLITE_OK
    }
    return sqlite3_vfs_register(anchored, 0) == SQLITE_OK
  }()
}

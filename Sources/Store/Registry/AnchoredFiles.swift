// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CSQLite
internal import Glibc

/// SQLite's own access to files, for one database: it reaches that file and its journal, and nothing else.
///
/// SQLite opens files by path, and resolves all links in it first. That would turn the link to a descriptor
/// (`/proc/self/fd/7/name`) into the path that the directory had at that moment, and walk that from then on;
/// taken as it is, it leads to the very directory that the descriptor stands for, wherever that is now.
///
/// A journal can name a second file, which SQLite looks for, reads and deletes when it plays the journal
/// back: it believes the name, an absolute path. Ours name none, so whoever wrote such a name wants us to
/// delete that file for them.
struct AnchoredFiles: ~Copyable {
  /// A connection asks for the access by the path of its database, which no two connections have in common.
  private let access: UnsafeMutablePointer<sqlite3_vfs>
  private let path: UnsafeMutablePointer<CChar>

  /// What a connection asks for it by.
  var name: UnsafePointer<CChar> { UnsafePointer(path) }

  /// What a connection answers whose journal names another file.
  static let namesOtherFile = SQLITE_CORRUPT | 113 << 8

  private nonisolated(unsafe) static let usual = sqlite3_vfs_find("unix")

  /// Nil if SQLite does not accept it.
  init?(to database: String) {
    guard let usual = Self.usual, let path = strdup(database) else { return nil }
    let access = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    access.initialize(to: usual.pointee)
    access.pointee.zName = UnsafePointer(path)
    access.pointee.pNext = nil
    access.pointee.xFullPathname = { _, path, count, result in
      guard let path, let result, strlen(path) < Int(count) else { return SQLITE_CANTOPEN }
      strcpy(result, path)
      return SQLITE_OK
    }
    access.pointee.xOpen = { access, name, file, flags, result in
      guard AnchoredFiles.mayUse(name, by: access), let open = AnchoredFiles.usual?.pointee.xOpen else {
        file?.pointee.pMethods = nil
        return SQLITE_CANTOPEN
      }
      return open(access, name, file, flags, result)
    }
    access.pointee.xAccess = { access, name, flags, result in
      if AnchoredFiles.mayUse(name, by: access), let look = AnchoredFiles.usual?.pointee.xAccess {
        return look(access, name, flags, result)
      }
      result?.pointee = 0
      // SQLite asks for a log beside each database before it reads it; all else stands in a journal.
      return AnchoredFiles.isLog(name, of: access) ? SQLITE_OK : AnchoredFiles.namesOtherFile
    }
    access.pointee.xDelete = { access, name, synchronizes in
      guard AnchoredFiles.mayUse(name, by: access), let delete = AnchoredFiles.usual?.pointee.xDelete else {
        return SQLITE_IOERR
      }
      return delete(access, name, synchronizes)
    }
    guard sqlite3_vfs_register(access, 0) == SQLITE_OK else {
      access.deallocate()
      free(path)
      return nil
    }
    self.access = access
    self.path = path
  }

  deinit {
    sqlite3_vfs_unregister(access)
    access.deallocate()
    free(path)
  }

  private static func mayUse(
    _ name: UnsafePointer<CChar>?, by access: UnsafeMutablePointer<sqlite3_vfs>?
  ) -> Bool {
    guard let end = ending(of: name, access) else { return false }
    return end.pointee == 0 || strcmp(end, "-journal") == 0
  }

  private static func isLog(
    _ name: UnsafePointer<CChar>?, of access: UnsafeMutablePointer<sqlite3_vfs>?
  ) -> Bool {
    ending(of: name, access).map { strcmp($0, "-wal") == 0 } ?? false
  }

  /// What follows the path of the database in a name; nil for a name that does not begin with it.
  private static func ending(
    of name: UnsafePointer<CChar>?, _ access: UnsafeMutablePointer<sqlite3_vfs>?
  ) -> UnsafePointer<CChar>? {
    guard let name, let database = access?.pointee.zName else { return nil }
    let length = strlen(database)
    return strncmp(name, database, length) == 0 ? name + length : nil
  }
}

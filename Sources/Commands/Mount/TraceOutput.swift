// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy

// Others may write to the directory in which a report is to go: a link there may lead to any file of the
// caller's, who may be root, and the file that has the name may be somebody else's. So the report goes to a
// new file, a file of the caller's with one name, a pipe of the caller's, or a device; no link is followed.

/// The file that a report goes to.
enum TraceOutput {
  /// Opens the file for writing; a regular file is empty then.
  static func open(_ path: String, _ context: Context) throws -> OwnedFD {
    do {
      if let number = descriptor(path) { return try duplicate(number) }
      guard let (above, name) = split(path) else { throw Errno.EISDIR }
      let parent = try context.openToMake(in: above, pathOnly)
      // Again if somebody makes the file meanwhile, or removes it.
      for _ in 0..<16 {
        do throws(Errno) { return try make(name, in: parent.fd) } catch {
          if error != .EEXIST { throw error }
        }
        guard let found = try find(name, in: parent.fd) else { continue }
        let status = try found.fd.status()
        if let reason = refusal(of: status) {
          throw CommandFailure(.failed, "can't write \(path.sanitized): \(reason)")
        }
        // A pipe waits for its reader, as in a shell.
        return try found.fd.reopened(O_WRONLY | O_NOCTTY | (status.isRegular ? O_TRUNC : 0))
      }
      throw Errno.EEXIST
    } catch let error as Errno {
      throw CommandFailure(error, "can't write \(path.sanitized): \(Context.words(ofMaking: error))")
    }
  }

  /// The directory that a path is in, and the last name; nil if it ends in none.
  private static func split(_ path: String) -> (above: String, name: String)? {
    let end = path.utf8.lastIndex(of: UInt8(ascii: "/"))
    let name = end.map { String(path[path.utf8.index(after: $0)...]) } ?? path
    guard !name.isEmpty, name != ".", name != ".." else { return nil }
    return (end.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? ".", name)
  }

  private static func make(_ name: String, in parent: FD) throws(Errno) -> OwnedFD {
    try name.withName { (name) throws(Errno) in
      try parent.open(name, O_WRONLY | O_CREAT | O_EXCL, mode: 0o666)
    }
  }

  /// What has the name; nil if nothing has it.
  private static func find(_ name: String, in parent: FD) throws(Errno) -> OwnedFD? {
    do throws(Errno) {
      return try name.withName { (name) throws(Errno) in try parent.open(name, pathOnly) }
    } catch .ENOENT {
      return nil
    }
  }

  /// Why nothing is written to what is there already; nil if it is.
  private static func refusal(of status: FileStatus) -> String? {
    let isOwn = status.st_uid == ProcessID.user
    switch status.st_mode & S_IFMT {
    case S_IFLNK: return "it is a symbolic link; name the file that is meant"
    case S_IFREG where !isOwn: return "it is a file of somebody else's; choose another name"
    case S_IFREG where status.st_nlink > 1: return "it has other names too (hard links); choose another name"
    case S_IFIFO where !isOwn: return "it is a pipe of somebody else's; choose another name"
    // Only root makes devices.
    case S_IFREG, S_IFIFO, S_IFCHR: return nil
    case S_IFDIR: return "it is a directory"
    default: return "it is neither a file, nor a pipe, nor a character device; choose another name"
    }
  }

  /// Which descriptor of this process a path stands for: `/dev/stdout` and its like are links.
  private static func descriptor(_ path: String) -> Int32? {
    switch path {
    case "/dev/stdout": return 1
    case "/dev/stderr": return 2
    default:
      for directory in ["/dev/fd/", "/proc/self/fd/"] where path.hasPrefix(directory) {
        return Int32(path.dropFirst(directory.count))
      }
      return nil
    }
  }

  private static func duplicate(_ number: Int32) throws(Errno) -> OwnedFD {
    guard number >= 0 else { throw .EBADF }
    guard try check(clx_fcntl(number, F_GETFL, 0)) & O_ACCMODE != O_RDONLY else { throw .EBADF }
    return OwnedFD(owning: try check(clx_fcntl(number, F_DUPFD_CLOEXEC, 3)))
  }
}

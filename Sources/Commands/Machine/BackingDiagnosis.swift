// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Store

/// What the filesystem offers on which a store lies, or would lie.
struct BackingDiagnosis {
  private let path: String
  private let context: Context

  init(_ path: String, _ context: Context) {
    self.path = path
    self.context = context
  }

  var all: [Diagnosis] {
    // The store, or the nearest directory above it that exists.
    var found = path
    while true {
      if let directory = try? open(found) {
        let fd = directory.fd
        return [store(found)] + door(found) + [kind(fd)] + machines(fd)
          + [handles(fd), attributes(fd), renames(fd), creationTimes(fd), unnamedFiles(fd), space(fd)]
      }
      guard found != "/", let slash = found.utf8.lastIndex(of: UInt8(ascii: "/")) else { break }
      found = slash == found.startIndex ? "/" : String(found[..<slash])
    }
    return [
      Diagnosis(
        name: "store", level: .warn, finding: "\(path) can't be reached",
        advice: "check the path and the permissions of the directories on it")
    ]
  }

  private func open(_ path: String) throws(Errno) -> OwnedFD {
    try FD.cwd.openFollowing(path, O_RDONLY | O_DIRECTORY)
  }

  private func store(_ found: String) -> Diagnosis {
    found == path
      ? Diagnosis(name: "store", level: .ok, finding: "\(path)")
      : Diagnosis(
        name: "store", level: .warn, finding: "\(path) does not exist yet; checked \(found) instead",
        advice: "'insula init' creates it")
  }

  /// Who else gets at the store.
  private func door(_ found: String) -> [Diagnosis] {
    guard found == path, let store = try? Store(opening: path, .inspect) else { return [] }
    return store.doorFindings.map {
      Diagnosis(name: "way to the store", level: .fail, finding: "\($0.path) \($0.words)", advice: $0.advice)
    }
  }

  private func kind(_ directory: FD) -> Diagnosis {
    let name = (try? directory.filesystemKind().name) ?? "unknown"
    switch name {
    case "overlay":
      return Diagnosis(
        name: "filesystem", level: .warn,
        finding: "overlay is layered over another filesystem: the kernel refuses passthrough, and data goes "
          + "through the daemon",
        advice: "put the store directly on a disk's filesystem (in a container: on a volume)")
    case "fuse":
      return Diagnosis(
        name: "filesystem", level: .warn,
        finding: "fuse is layered over another filesystem: passthrough is refused or slower",
        advice: "put the store directly on a disk's filesystem (in a container: on a volume)")
    case "vfat", "exfat":
      return Diagnosis(
        name: "filesystem", level: .fail, finding: "\(name) does not support owners, modes and links",
        advice: "put the store on a filesystem such as ext4, xfs or btrfs")
    case "tmpfs":
      return Diagnosis(
        name: "filesystem", level: .warn, finding: "tmpfs: the store will be lost when the machine restarts",
        advice: "put the store on a disk to keep it")
    default:
      return Diagnosis(name: "filesystem", level: .ok, finding: name)
    }
  }

  private func handles(_ directory: FD) -> Diagnosis {
    guard let handle = directory.handle() else {
      return Diagnosis(
        name: "file handles", level: .warn,
        finding: "not supported by this filesystem; uses descriptors instead",
        advice: "this works; with very many files, ext4, xfs or btrfs is faster")
    }
    do throws(Errno) {
      _ = try directory.open(handle)
      return Diagnosis(name: "file handles", level: .ok, finding: "supported here")
    } catch {
      return Diagnosis(
        name: "file handles", level: .warn,
        finding: "\(error.message); uses descriptors instead",
        advice: context.isRoot
          ? "the daemon needs CAP_DAC_READ_SEARCH" : "this works: only root can use file handles")
    }
  }

  /// An unnamed file is tried, so that nothing is left or seen; where there is none, one with a name.
  private func attributes(_ directory: FD) -> Diagnosis {
    let name = context.isRoot ? "trusted.insula.doctor" : "user.insula.doctor"
    do throws(Errno) {
      try directory.withFileForTrying { (file) throws(Errno) in
        try name.withName { (name) throws(Errno) in
          try withUnsafeBytes(of: UInt8(1)) { (bytes) throws(Errno) in
            try file.setAttribute(name.bytes, to: bytes, flags: 0)
          }
        }
      }
      return Diagnosis(
        name: "extended attributes", level: .ok, finding: "\(name.prefix { $0 != "." }).* is supported here")
    } catch {
      if error == .EACCES || error == .EPERM || error == .EROFS {
        return Diagnosis(
          name: "extended attributes", level: .warn, finding: "can't be tested here: \(error.message)",
          advice: "run this command as the owner of the store")
      }
      return Diagnosis(
        name: "extended attributes", level: .warn, finding: "\(error.message)",
        advice: "put the store on a filesystem that supports them (ext4, xfs, btrfs; tmpfs from Linux 6.6)")
    }
  }

  private func renames(_ directory: FD) -> Diagnosis {
    directory.knowsRenameFlags
      ? Diagnosis(name: "renames", level: .ok, finding: "names can be exchanged in one step")
      : Diagnosis(
        name: "renames", level: .warn,
        finding: "names can't be exchanged in one step here (renameat2 has no flags)",
        advice: "this works; if the machine stops while an app or its data are replaced, what was there lies "
          + "beside it, under a name that begins with '\(FD.exchangePrefix)'")
  }

  /// Objects that get a number again are told apart by handles, or else by when they were made.
  private func creationTimes(_ directory: FD) -> Diagnosis {
    if (try? directory.creationTime()) != nil {
      return Diagnosis(name: "creation times", level: .ok, finding: "kept here")
    }
    let isNeeded = directory.handle() == nil
    return Diagnosis(
      name: "creation times", level: isNeeded ? .warn : .ok,
      finding: "this filesystem has none" + (isNeeded ? ", and no file handles" : ""),
      advice: isNeeded
        ? "a file that is replaced behind the daemon may be taken for the one before; let nobody else change "
          + "the store" : nil)
  }

  private func unnamedFiles(_ directory: FD) -> Diagnosis {
    do throws(Errno) {
      _ = try directory.openUnnamed(O_RDWR, mode: 0o600)
      return Diagnosis(name: "unnamed files", level: .ok, finding: "O_TMPFILE works here")
    } catch {
      return Diagnosis(
        name: "unnamed files", level: .warn, finding: "\(error.message) (O_TMPFILE)",
        advice: "this works; programs that ask for such a file make one with a name, and remove that")
    }
  }

  /// Said only where there may be others.
  private func machines(_ directory: FD) -> [Diagnosis] {
    guard (try? directory.filesystemKind().isRemote) == true else { return [] }
    return [
      Diagnosis(
        name: "other machines", level: .ok,
        finding: "may have this filesystem too; a lease lets one of them use the store at a time")
    ]
  }

  private func space(_ directory: FD) -> Diagnosis {
    guard let status = try? directory.filesystemStatus() else {
      return Diagnosis(name: "free space", level: .warn, finding: "can't be determined")
    }
    let bytes = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
    let mebibytes = (bytes.overflow ? UInt64.max : bytes.partialValue) >> 20
    let inodes = status.f_files > 0 && status.f_favail < 1000
    guard mebibytes >= 100, !inodes else {
      return Diagnosis(
        name: "free space", level: .warn, finding: "\(mebibytes) MiB, \(status.f_favail) files",
        advice: "free some space before it runs out ('df -h', 'df -i')")
    }
    return Diagnosis(name: "free space", level: .ok, finding: "\(mebibytes) MiB")
  }
}

extension FD {
  /// Lends a new file in this directory that nobody sees, or only for a moment.
  fileprivate func withFileForTrying(_ body: (FD) throws(Errno) -> Void) throws(Errno) {
    do throws(Errno) {
      let file = try openUnnamed(O_RDWR, mode: 0o600)
      return try body(file.fd)
    } catch {
      guard [.EOPNOTSUPP, .EISDIR, .ENOSYS, .EINVAL].contains(error) else { throw error }
    }
    let name = ".insula-try-\(ProcessID.own)"
    let file = try open(name, O_RDWR | O_CREAT | O_EXCL, mode: 0o600)
    defer { try? remove(name, directory: false) }
    try body(file.fd)
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

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
        return [store(found), kind(fd), handles(fd), attributes(fd), space(fd)]
      }
      guard found != "/", let slash = found.lastIndex(of: "/") else { break }
      found = slash == found.startIndex ? "/" : String(found[..<slash])
    }
    return [
      Diagnosis(
        name: "store", level: .warn, finding: "\(path) can't be reached",
        advice: "check the path, and who may walk through it")
    ]
  }

  private func open(_ path: String) throws(Errno) -> OwnedFD {
    try FD.cwd.openFollowing(path, O_RDONLY | O_DIRECTORY)
  }

  private func store(_ found: String) -> Diagnosis {
    found == path
      ? Diagnosis(name: "store", level: .ok, finding: "\(path)")
      : Diagnosis(
        name: "store", level: .warn, finding: "\(path) does not exist yet; looking at \(found)",
        advice: "'insula init' makes it")
  }

  private func kind(_ directory: FD) -> Diagnosis {
    let name = (try? directory.filesystemKind().name) ?? "unknown"
    switch name {
    case "overlay", "fuse":
      return Diagnosis(
        name: "filesystem", level: .warn,
        finding: "\(name), a layer over another: the kernel refuses passthrough on it, or is slower",
        advice: "put the store on a disk's own filesystem (in a container: on a volume)")
    case "vfat", "exfat":
      return Diagnosis(
        name: "filesystem", level: .fail, finding: "\(name) has no owners, modes or links",
        advice: "put the store on a filesystem such as ext4, xfs or btrfs")
    case "tmpfs":
      return Diagnosis(
        name: "filesystem", level: .warn, finding: "tmpfs: the store is gone when the machine restarts",
        advice: "put a store that is to last on a disk")
    default:
      return Diagnosis(name: "filesystem", level: .ok, finding: name)
    }
  }

  private func handles(_ directory: FD) -> Diagnosis {
    guard let handle = directory.handle() else {
      return Diagnosis(
        name: "file handles", level: .warn, finding: "this filesystem has none; descriptors are kept instead",
        advice: "nothing is wrong; with very many files ext4, xfs or btrfs is faster")
    }
    do throws(Errno) {
      _ = try directory.open(handle)
      return Diagnosis(name: "file handles", level: .ok, finding: "work here")
    } catch {
      return Diagnosis(
        name: "file handles", level: .warn,
        finding: "\(error.message); descriptors are kept instead",
        advice: context.isRoot
          ? "the daemon needs CAP_DAC_READ_SEARCH" : "nothing is wrong: only root may use them")
    }
  }

  /// An unnamed file is tried, so that nothing is left or seen.
  private func attributes(_ directory: FD) -> Diagnosis {
    let name = context.isRoot ? "trusted.insula.doctor" : "user.insula.doctor"
    do throws(Errno) {
      let file = try directory.openUnnamed(O_RDWR, mode: 0o600)
      try [UInt8](name.utf8).withName { (name) throws(Errno) in
        try withUnsafeBytes(of: UInt8(1)) { (bytes) throws(Errno) in
          try file.fd.setAttribute(name.bytes, to: bytes, flags: 0)
        }
      }
      return Diagnosis(
        name: "extended attributes", level: .ok, finding: "\(name.prefix { $0 != "." }).* works here")
    } catch {
      if error == .EACCES || error == .EPERM || error == .EROFS {
        return Diagnosis(
          name: "extended attributes", level: .warn, finding: "can't be tried here: \(error.message)",
          advice: "run this as the owner of the store")
      }
      return Diagnosis(
        name: "extended attributes", level: .warn, finding: "\(error.message)",
        advice: "put the store on a filesystem that has them (ext4, xfs, btrfs; tmpfs from Linux 6.6)")
    }
  }

  private func space(_ directory: FD) -> Diagnosis {
    guard let status = try? directory.filesystemStatus() else {
      return Diagnosis(name: "free space", level: .warn, finding: "can't be read")
    }
    let bytes = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
    let mebibytes = (bytes.overflow ? UInt64.max : bytes.partialValue) >> 20
    let inodes = status.f_files > 0 && status.f_favail < 1000
    guard mebibytes >= 100, !inodes else {
      return Diagnosis(
        name: "free space", level: .warn, finding: "\(mebibytes) MiB, \(status.f_favail) files",
        advice: "free some before it runs out ('df -h', 'df -i')")
    }
    return Diagnosis(name: "free space", level: .ok, finding: "\(mebibytes) MiB")
  }
}

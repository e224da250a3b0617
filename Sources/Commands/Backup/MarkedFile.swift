// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Policy

/// A file or directory, and the marks that leave it out of backups.
struct MarkedFile {
  private let fd: FD

  init(_ fd: FD) { self.fd = fd }

  /// Does something to each file that a person has named; a link is none.
  static func forEach(
    _ paths: [String], _ context: Context, _ change: (MarkedFile) throws(CommandFailure) -> Void
  ) -> ExitCode {
    var walk = FileWalk(context)
    walk.visit(paths, recursively: false, followingLinks: false) { object throws in
      try change(MarkedFile(object.fd))
    }
    return walk.exitCode
  }

  /// The marks that count.
  func marks() throws(Errno) -> [BackupMark] {
    var found: [BackupMark] = []
    for mark in BackupMark.allCases {
      if let value = try fd.attributeValue("\(mark.name)", limit: 1 << 16), mark.excludes(value) {
        found.append(mark)
      }
    }
    return found
  }

  /// Sets all marks, so that every program that knows one of them leaves it out.
  func exclude() throws(CommandFailure) {
    try requireOurs()
    do throws(Errno) {
      for mark in BackupMark.allCases {
        try AttributesCopy.set("\(mark.name)", to: mark.value, on: fd)
      }
    } catch {
      throw CommandFailure(error)
    }
  }

  /// Takes all marks away.
  func include() throws(CommandFailure) {
    try requireOurs()
    for mark in BackupMark.allCases {
      do throws(Errno) {
        try "\(mark.name)".withName { (name) throws(Errno) in try fd.removeAttribute(name.bytes) }
      } catch .ENODATA {
        continue
      } catch {
        throw CommandFailure(error)
      }
    }
  }

  private func requireOurs() throws(CommandFailure) {
    let status: FileStatus
    do throws(Errno) { status = try fd.status() } catch { throw CommandFailure(error) }
    guard status.isRegular || status.isDirectory else {
      throw CommandFailure(.failed, "only files and directories can be left out of backups")
    }
    // Every file of a mounted tree has this one.
    guard (try? fd.attributeValue("system.insula.flags", limit: 1 << 16)) != nil else {
      throw CommandFailure(.failed, "is not on an insula mount; backups by insula contain nothing of it")
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO
internal import Policy
internal import PropertyLists
package import Store

/// Makes a backup in iTunes' form, not encrypted, of what of apps' containers is backed up.
package struct ITunesExport {
  /// The tree, and where it is to be seen.
  private let tree: FD
  private let access: SecurityAccess
  private let device: BackupDevice
  private let progress: (TreeCopy.Count) -> Void
  private let isStill: (AppDescription) -> Bool

  /// `isStill` says whether an app still has the containers that it had: what was read of them is noted as
  /// the data of its team.
  package init(
    tree: FD, access: SecurityAccess, device: BackupDevice,
    progress: @escaping (TreeCopy.Count) -> Void = { _ in },
    isStill: @escaping (AppDescription) -> Bool = { _ in true }
  ) {
    (self.tree, self.access, self.device, self.progress) = (tree, access, device, progress)
    self.isStill = isStill
  }

  /// What was written of one container.
  package struct Part: Codable, Sendable {
    package let domain: String
    package var files = 0
    package var directories = 0
    package var links = 0
    package var bytes: Int64 = 0
    /// Nothing was, as it is marked, or something that it is in.
    package var isLeftOut = false
  }

  /// Writes it to a directory that is not there or is empty; it is there whole or not at all.
  package func write(
    _ apps: [AppDescription], to name: String, in parent: FD, at parentPath: String
  ) throws(DataFailure) -> (parts: [Part], omissions: [DataCopy.Omission]) {
    let target = "\(parentPath)/\(name)"
    if parent.has(name), !Self.isEmptyDirectory(name, in: parent) { throw .notEmpty(path: target) }
    var result: (parts: [Part], omissions: [DataCopy.Omission]) = ([], [])
    var failure: DataFailure?
    do throws(Errno) {
      // An empty directory gives way to it.
      try ExportPlace(parent: parent, name: name).put(flags: 0) { (backup) throws(Errno) in
        do throws(DataFailure) {
          result = try fill(backup, apps, target)
        } catch {
          failure = error
          throw .EIO
        }
      }
    } catch .ENOTEMPTY, .EEXIST, .ENOTDIR {
      throw .notEmpty(path: target)
    } catch {
      throw failure ?? .failed(doing: "make", path: target, errno: error)
    }
    return result
  }

  private static func isEmptyDirectory(_ name: String, in parent: FD) -> Bool {
    guard let directory = try? parent.openDirectory(name) else { return false }
    return (try? directory.fd.entries(atMost: 1))?.isEmpty ?? false
  }

  private func fill(
    _ backup: FD, _ apps: [AppDescription], _ path: String
  ) throws(DataFailure) -> ([Part], [DataCopy.Omission]) {
    let walk = try ITunesWalk(tree: tree, access: access, backup: backup, path: path, progress: progress)
    for container in apps.flatMap({ $0.containers ?? [] }) {
      guard let identifier = AppIdentifier(container.identifier) else { continue }
      switch ContainerKind(rawValue: container.kind) {
      case .data: try walk.copy(.app(identifier), "\(container.path)/\(ContainerLayout.dataName)")
      case .group: try walk.copy(.group(identifier), container.path)
      case .cloud, nil: continue
      }
    }
    try walk.finish()
    for app in apps where !isStill(app) { throw .otherNow(identifier: app.identifier) }
    for (name, list) in device.lists(apps) {
      try explaining("write", "\(path)/\(name)") { () throws(Errno) in
        guard let bytes = try? list.xml() else { throw .EINVAL }
        try backup.replaceContents(of: name, with: bytes, mode: 0o600)
      }
    }
    try explaining("write", path) { () throws(Errno) in try backup.synchronizeFilesystem() }
    return (walk.parts, walk.omissions)
  }
}

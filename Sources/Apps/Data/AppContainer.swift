// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO
package import Policy
package import Store

/// A container of an app or a group of apps in a user's home, open so that its data can be moved: in the
/// store, or through a mount, where whoever does it may do what the user's directories let them.
package final class AppContainer {
  /// The directory in which the home has its containers.
  let containers: OwnedFD
  /// The container itself.
  let directory: OwnedFD
  let kind: ContainerKind
  /// What the app has as its home, in it; a group's is that itself.
  let data: OwnedFD
  /// The container's name.
  let name: String
  /// Where it is below the root of the tree, and, for messages, as a whole.
  let location: String
  package let path: String
  let access: SecurityAccess
  /// Whose app's it is to be when something is put into it; nil where nobody said.
  let team: BackupTeam?
  let owner: (uid: UInt32, gid: UInt32)

  /// `path` is the container's below the root of the tree, which can be seen at `root`.
  package init(
    _ path: String, in tree: FD, at root: String, access: SecurityAccess, kind: ContainerKind = .data,
    team: BackupTeam? = nil
  ) throws(DataFailure) {
    location = path
    self.team = team
    self.path = "\(root)/\(path)"
    self.access = access
    self.kind = kind
    let (above, name) = path.splitAtName
    self.name = name
    do throws(Errno) {
      containers = try tree.openDirectory(at: above)
      directory = try containers.fd.openDirectory(name)
      data =
        try kind == .data ? directory.fd.openDirectory(ContainerLayout.dataName) : directory.fd.duplicated()
      let status = try directory.fd.status()
      owner = (status.st_uid, status.st_gid)
    } catch {
      throw .failed(doing: "open", path: self.path, errno: error)
    }
  }

  /// Throws where nothing can be made, before anybody reads what is to come there.
  func refuseReadOnly() throws(DataFailure) {
    let status = try explaining("examine", path) { () throws(Errno) in
      try containers.fd.filesystemStatus()
    }
    if status.f_flag & UInt(ST_RDONLY) != 0 { throw .readOnly(path: path) }
  }

  /// Where things are made before they get their place: nobody looks for them under such names.
  func workshop(_ prefix: String) -> Workshop {
    Workshop(directory: containers.fd, prefix: prefix)
  }

  /// Removes what was left by those who were stopped.
  ///
  /// Where others may rename what is among the containers, the name does not say that it was left, and only
  /// what is empty goes.
  func clear(_ workshop: Workshop) throws(DataFailure) {
    try explaining("clear", path) { () throws(Errno) in
      let isAlone = try access.isAlone(containers.fd, of: owner.uid)
      try workshop.clear { [access, owner] (directory, name) throws(Errno) in
        let user = try directory.status(of: name).st_uid
        guard isAlone, user == owner.uid || user == ProcessID.user else {
          try? directory.remove(name, directory: true)
          return
        }
        try access.removeTree(name, in: directory)
      }
    }
  }

  /// Removes something that was made among the containers and did not come to be one; `held` is that, if it
  /// is a directory.
  func discard(_ temporary: String, held: SharedFD?) {
    guard let held else {
      try? access.remove(held: nil, named: temporary, in: containers.fd)
      return
    }
    try? held.use { (held) throws(Errno) in
      try access.remove(held: held, named: temporary, in: containers.fd)
    }
  }

  /// Forces to disk what was written.
  func synchronize() throws(DataFailure) {
    // A FUSE mount passes no request for all of it on to the filesystem below.
    if case .mount = access { return Glibc.sync() }
    try explaining("write to disk", path) { () throws(Errno) in try containers.fd.synchronizeFilesystem() }
  }

  /// Makes a directory that is ours until it is given away, and opens it; `place` is where it is to come.
  func makeOwnDirectory(
    _ name: String, in parent: FD, for place: String? = nil
  ) throws(DataFailure) -> OwnedFD {
    try explaining("make", place ?? "\(path)/\(name)") { () throws(Errno) in
      try parent.makeAndOpenDirectory(name)
    }
  }

  /// Makes a directory that is the user's.
  func makeDirectory(_ name: String, in parent: FD) throws(Errno) {
    try parent.makeDirectory(name, mode: ContainerLayout.mode)
    let made = try parent.child(name)
    try give(made.fd)
  }

  /// Makes something of ours the user's.
  func give(_ object: FD) throws(Errno) {
    let status = try object.status()
    guard status.st_uid != owner.uid || status.st_gid != owner.gid else { return }
    try object.changeOwner(uid: owner.uid, gid: owner.gid)
  }

  /// Whether there is anything in one of the container's directories besides what is known.
  private func hasEntries(in path: String, besides known: Set<String>) throws(Errno) -> Bool {
    do throws(Errno) {
      let directory = try directory.fd.openDirectory(at: path)
      return try directory.fd.firstEntry { name, type in
        // The link to the bundle is no data.
        if path == ContainerLayout.dataName, ContainerLayout.isBundleLink(name, type) { return false }
        let name = String(decoding: name.buffer, as: UTF8.self)
        return !known.contains("\(path)/\(name)") && name != CacheDirectoryTag.name
      } != nil
    } catch .ENOENT {
      return false
    }
  }

  /// Whether there is anything in it but what it begins with.
  package var hasData: Bool {
    get throws(DataFailure) {
      let known = Set(ContainerLayout.directories(of: .data))
      return try explaining("search", path) { () throws(Errno) in
        if kind != .data {
          return try directory.fd.firstEntry { name, _ in
            !name.buffer.elementsEqual(ContainerLayout.metadataName.utf8)
          } != nil
        }
        for path in known where try hasEntries(in: path, besides: known) { return true }
        return false
      }
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO

/// Which directory a store is, whatever it is called: a copy has the same UUID and another identity, and a
/// bind mount or another mount namespace shows the same one.
package struct StoreIdentity: Codable, Hashable, Sendable {
  package let device: UInt64
  package let inode: UInt64

  package init(of directory: FD) throws(Errno) {
    self.init(try directory.status())
  }

  package init(_ status: FileStatus) {
    device = UInt64(status.st_dev)
    inode = UInt64(status.st_ino)
  }

  /// Of what is at a path; nil where that can't be looked at.
  package init?(at path: String) {
    guard let object = try? FD.cwd.openFollowing(path, pathOnly),
      let found = try? StoreIdentity(of: object.fd)
    else { return nil }
    self = found
  }

  /// As it is written in names.
  package var text: String { String(device, radix: 16) + "-" + String(inode, radix: 16) }
}

extension Store {
  /// What only the daemon and commands change, in many steps: the files of the registry and what lies beside
  /// them, the keys, and the directories of both; nil if that can't be seen.
  ///
  /// What lies deeper in `state` comes from the tree, or goes there: users may have it open.
  package var ownObjects: Set<StoreIdentity>? {
    var objects: Set<StoreIdentity> = []
    for name in StoreLayout.privateDirectories {
      guard let place = try? directory.open(name, O_RDONLY | O_DIRECTORY),
        let status = try? place.fd.status(), let entries = try? place.fd.entries()
      else { return nil }
      objects.insert(StoreIdentity(status))
      for entry in entries {
        // What has gone meanwhile is nothing any more.
        guard let status = try? place.fd.status(of: entry.name) else { continue }
        if !status.isDirectory || name == "keys" { objects.insert(StoreIdentity(status)) }
      }
    }
    return objects
  }

  /// Which directory this is.
  package var identity: StoreIdentity? { try? StoreIdentity(of: directory) }

  /// Gives the store a UUID of its own; a copy has that of its original until then.
  ///
  /// The store must be ours alone.
  package func renewUUID() throws(StoreError) {
    let renewed = description.withNewUUID()
    try explaining("write", "\(path)/\(StoreLayout.descriptionName)") { () throws(Errno) in
      let mode = try directory.status(of: StoreLayout.descriptionName).permissions
      try directory.replaceContents(of: StoreLayout.descriptionName, with: renewed.encoded(), mode: mode)
      try directory.synchronize(dataOnly: false)
    }
  }
}

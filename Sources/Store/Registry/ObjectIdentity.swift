// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import LinuxIO

/// What tells an object of a store from every other, also after the machine has started again.
package struct ObjectIdentity: Codable, Equatable, Sendable {
  package let inode: UInt64
  /// Its handle; empty where the filesystem has none.
  package let handle: [UInt8]
  /// In nanoseconds since 1970; 0 where the filesystem does not know.
  package let created: Int64

  package init(inode: UInt64, handle: [UInt8], created: Int64) {
    self.inode = inode
    self.handle = handle
    self.created = created
  }

  /// Stands for whatever lies on a share of a server, by the share's URL: the server itself is not asked.
  package init(ofShareAt address: [UInt8]) {
    self.init(inode: 0, handle: Self.shareMark + address, created: 0)
  }

  private static let shareMark = Array("share ".utf8)
  package var isOfShare: Bool { inode == 0 && handle.starts(with: Self.shareMark) }

  /// Stands for the home of a volume by its name, place and owner: the disk itself is not asked.
  ///
  /// Where it lies, others can have theirs, and when it is ejected, somebody else of that name. As long as
  /// nobody knows whose it is, no other volume is the same home.
  init(ofHome volume: VolumeRecord, of owner: UInt32?) {
    let handle =
      if let owner {
        Array("home of \(owner): ".utf8) + volume.name + [UInt8(ascii: "/")] + volume.path
      } else {
        Array("home of volume \(volume.id)".utf8)
      }
    self.init(inode: 0, handle: handle, created: 0)
  }

  /// Whether a home with that identity does not lie in the store.
  var isOfHomeElsewhere: Bool { inode == 0 }

  /// What an earlier version has noted for all homes of one directory, disk or server.
  init(ofAllHomesAt source: [UInt8]) {
    self.init(inode: 0, handle: Array("home ".utf8) + source, created: 0)
  }

  /// Asks the filesystem.
  package init(_ status: FileStatus, of object: FD) {
    inode = UInt64(status.st_ino)
    handle = object.handle()?.encoded ?? []
    let time = (try? object.creationTime()) ?? nil
    created = time.map { Int64($0.tv_sec) &* 1_000_000_000 &+ Int64($0.tv_nsec) } ?? 0
  }

  /// That of what has a name in a directory; no link is followed.
  package init(of name: some NameText, in parent: FD) throws(Errno) {
    let object = try parent.child(name)
    self.init(try object.fd.status(), of: object.fd)
  }

  /// A number is given to another object when the first is gone; handles and times tell the two apart.
  package static func == (one: ObjectIdentity, other: ObjectIdentity) -> Bool {
    guard one.inode == other.inode else { return false }
    return one.handle.isEmpty || other.handle.isEmpty
      ? one.created == other.created : one.handle == other.handle
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
package import LinuxIO
internal import Policy

// Changes of the tree that no kernel has asked for: the daemon's own.

extension Volume {
  /// Changes names in a directory of the tree; what any kernel knows of them is withdrawn when this returns.
  package func changeNames(in directory: FD, _ body: () throws(Errno) -> Void) throws(Errno) {
    let changed = Identity(try directory.status(), of: directory)
    try names.change(body)
    settleGrants(in: DirectoryNumber(inode: changed.inode, device: changed.device))
    nameChanged(in: changed)
  }

  /// Does `body`, which moves something from one directory of the tree to an app's Inbox.
  ///
  /// What a kernel knows of it from before is as little to be changed from then on as what is newly found there.
  package func deliver(
    _ name: Name, from source: FD, to inbox: FD, _ body: () throws(Errno) -> Void
  ) throws(Errno) {
    let left = Identity(try source.status(), of: source)
    let entered = Identity(try inbox.status(), of: inbox)
    let status = try source.status(of: name)
    try names.change(body)
    forEachView { view in
      view.nodes.setZone(
        .delivered, inode: UInt64(status.st_ino), device: UInt32(truncatingIfNeeded: status.st_dev),
        withAllBelow: status.isDirectory)
    }
    nameChanged(in: left)
    nameChanged(in: entered)
  }

  /// Lets the kernel of every view look again at the names of a directory.
  func nameChanged(in directory: Identity) { forEachView { $0.nameChanged(in: directory) } }
}

extension View {
  /// A name in a directory has come, gone or changed without the kernel's doing.
  fileprivate func nameChanged(in directory: Identity) {
    let known = nodes.with(directory) { id, node in
      node.flags.remove(.attributesCached)
      return (id: id, hadNames: node.flags.remove(.childrenCached) != nil)
    }
    guard let known else { return }
    // A listing that the kernel keeps is good for as long as the attributes say so.
    connection?.attributesChanged(known.id)
    // All names at once, since the kernel can't be told of one without waiting for those who use it: a second LOOKUP each, for
    // something rare.
    if known.hadNames { _ = connection?.entriesChanged() }
  }
}

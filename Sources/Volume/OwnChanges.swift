// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
package import LinuxIO
internal import Policy

// Changes of the tree that no kernel has asked for: the daemon's own.

extension Volume {
  /// Changes names in some directories of the tree; what any kernel knows of them is withdrawn when this returns.
  ///
  /// Of every directory, since the kernel can't be told of one name without waiting for those who use it. That is no more than a
  /// second LOOKUP each, for something rare.
  package func changeNames(
    in directories: [SharedFD], _ body: () throws(Errno) -> Void
  ) throws(Errno) {
    try names.change(body)
    for directory in directories {
      // One that can't be looked at any more is no one's that the kernel could know.
      let found = try? directory.use { (fd) throws(Errno) in Identity(try fd.status(), of: fd) }
      guard let found else { continue }
      forEachView { $0.attributesChanged(of: found) }
    }
    forEachView { $0.namesChanged() }
  }
}

extension View {
  /// Takes back what this view's kernel has been told of an object's attributes: a directory's listing goes with them.
  fileprivate func attributesChanged(of identity: Identity) {
    let node = nodes.with(identity) { id, node in
      node.flags.remove(.attributesCached)
      return id
    }
    if let node { connection?.attributesChanged(node) }
  }

  fileprivate func namesChanged() { _ = connection?.entriesChanged() }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
package import LinuxIO
internal import Policy

// Changes of the tree that no kernel has asked for: the daemon's own.

extension Volume {
  /// Changes names in a directory of the tree; what any kernel knows of them is withdrawn when this returns.
  ///
  /// Of every directory, since the kernel can't be told of one name without waiting for those who use it. That is no more than a
  /// second LOOKUP each, for something rare.
  package func changeNames(in directory: FD, _ body: () throws(Errno) -> Void) throws(Errno) {
    let changed = Identity(try directory.status(), of: directory)
    try names.change(body)
    forEachView { view in
      view.attributesChanged(of: changed)
      view.namesChanged()
    }
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

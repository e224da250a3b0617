// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
package import LinuxIO

// Changes of the tree that no kernel has asked for: the daemon's own.

extension Volume {
  /// Changes names in a directory of the tree; what any kernel knows of them is withdrawn when this returns.
  package func changeNames(in directory: FD, _ body: () throws(Errno) -> Void) throws(Errno) {
    let changed = ObjectNumber(try directory.status())
    try names.change(body)
    nameChanged(in: changed)
  }

  /// Lets the kernel of every view look again at the names of a directory.
  ///
  /// All names at once, since a kernel can't be told of one without waiting for those who use it: a second LOOKUP each, for
  /// something rare. A listing that it keeps is good for as long as the attributes say so.
  func nameChanged(in directory: ObjectNumber) {
    for view in views.find(known.views(of: directory), besides: 0) {
      view.forget([.attributes, .names, .contents], of: directory)
    }
  }
}

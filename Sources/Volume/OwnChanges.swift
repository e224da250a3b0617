// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
package import LinuxIO
internal import Policy

// Changes of the tree that no kernel has asked for: the daemon's own.

extension Volume {
  /// Changes names in a directory of the tree; what any kernel knows of them is withdrawn when this returns.
  package func changeNames(in directory: FD, _ body: () throws(Errno) -> Void) throws(Errno) {
    let changed = ObjectNumber(try directory.status())
    try names.alone(in: changed, body)
    settleGrants(in: changed)
    nameChanged(in: changed)
  }

  /// Does `body`, which moves something from one directory of the tree to an app's Inbox.
  ///
  /// What a kernel knows of it from before is as little to be changed from then on as what is newly found
  /// there.
  package func deliver(
    _ name: Name, from source: FD, to inbox: FD, _ body: () throws(Errno) -> Void
  ) throws(Errno) {
    let left = ObjectNumber(try source.status())
    let entered = ObjectNumber(try inbox.status())
    let status = try source.status(of: name)
    try names.alone(in: left, entered, body)
    forEachView { view in
      view.nodes.setZone(
        .delivered, of: ObjectNumber(status), withAllBelow: status.isDirectory)
    }
    nameChanged(in: left)
    nameChanged(in: entered)
  }

  /// Does `body`, which exchanges a container with a directory beside it.
  ///
  /// What the kernels know of both gets the rules of the place that it is in now. What is granted there is
  /// for the place.
  package func exchange(
    _ container: Name, with other: Name, in directory: FD, _ body: () throws(Errno) -> Void
  ) throws(Errno) {
    let changed = ObjectNumber(try directory.status())
    let status = try directory.status(of: container)
    let old = ObjectNumber(status)
    let new = ObjectNumber(try directory.status(of: other))
    let owner = Payer(user: status.st_uid)
    try names.alone(in: changed) { () throws(Errno) in
      try body()
      forEachView(knowing: new, besides: 0) {
        $0.noteMoved(new, to: container, in: changed, directory, zone: .container, by: owner)
        $0.forget(.attributes, of: new)
      }
      forEachView(knowing: old, besides: 0) {
        $0.noteMoved(old, to: other, in: changed, directory, zone: .user, by: owner)
        $0.forget(.attributes, of: old)
      }
    }
    settleGrants(in: changed)
    nameChanged(in: changed)
  }

  /// Lets the kernel of every view look again at the names of a directory.
  ///
  /// All names at once, since a kernel can't be told of one without waiting for those who use it: a second
  /// LOOKUP each, for something rare. A listing that it keeps is good for as long as the attributes say so.
  func nameChanged(in directory: ObjectNumber) {
    forEachView(knowing: directory, besides: 0) {
      $0.forget([.attributes, .names, .contents], of: directory)
    }
  }
}

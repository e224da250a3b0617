// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import Fuse
internal import Glibc
package import LinuxIO
internal import Store

// Closing files, and giving back what was kept for them.

extension View {
  package func flush(_ node: NodeID, handle: HandleID, owner: LockOwner) throws(Errno) {
    if let object = nodes.number(of: node) {
      volume.locks.releaseAll(of: LockHolder(view: number, owner: owner), on: object, .posix)
    }
    // Some backing filesystems tell only at close that a write did not arrive.
    for descriptor in try files.find(handle).descriptors {
      try descriptor.use { (fd) throws(Errno) in try fd.duplicated().close() }
    }
  }

  package func release(_ node: NodeID, handle: HandleID, flockOwner: LockOwner?) {
    guard let file = files.remove(handle) else { return }
    defer { files.forget(handle) }
    if let object = nodes.number(of: node) {
      volume.locks.releaseAll(through: handle, view: number, on: object)
    }
    backings.close(node) { self.connection?.unregisterBacking($0) }
    writers.closed(node, file)
    giveBack(file)
  }

  private func giveBack(_ file: OpenFile) {
    volume.budget.give(.openFiles, by: file.payer)
    volume.budget.give(.descriptors, file.descriptors.count, by: file.payer)
  }

  /// Gives back what is open when the connection ends: the kernel releases nothing any more.
  func closeAll() {
    for file in files.removeAll() { giveBack(file) }
    for directory in directories.removeAll() { giveBack(directory) }
    volume.listings.removeAll(of: number)
  }
}

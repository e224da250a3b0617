// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Fuse
internal import Glibc
package import LinuxIO
internal import Policy
internal import Store

// The flags of lsattr and chattr. Those that Linux shares with BSD are ours, kept with the others and
// enforced by the daemon: set on the backing file they would stand in the daemon's own way. All others are
// the backing filesystem's.

extension View {
  package func inodeFlags(of node: NodeID, by caller: Caller) throws(Errno) -> UInt32 {
    let object = try nodes.reference(to: node)
    let shown = security(of: object).flags.linuxFlags
    let kept = try withOpened(object) { (file) throws(Errno) in try file.inodeFlags() }
    return kept & ~FileFlags.knownToLinux | shown
  }

  package func setInodeFlags(of node: NodeID, to flags: UInt32, by caller: Caller) throws(Errno) {
    let object = try nodes.reference(to: node)
    let status = try object.fd.status()
    let judged = try self.object(status, object)
    // The kernel has asked for CAP_LINUX_IMMUTABLE where a caller changes what is root's alone on Linux.
    let new = FileFlags(linux: flags & FileFlags.knownToLinux, changing: judged.flags)
    try gate.authorizeFlags(new, on: judged, by: caller)
    let number = object.number
    try withOpened(object) { (file) throws(Errno) in
      let kept = try file.inodeFlags()
      let wanted = kept & FileFlags.knownToLinux | flags & ~FileFlags.knownToLinux
      guard wanted != kept else { return }
      // A flag that comes or goes at the same time does not stand against the others, as on ext4.
      let lasting = judged.with(flags: judged.flags.intersection(new))
      try gate.authorizeAsOwner(.writeSecurity, on: lasting, by: caller)
      try file.setInodeFlags(wanted)
      attributesChanged(of: number)
    }
    try setFlags(new, of: object, status, judged, for: caller.request)
    volume.arrivingFlags.end(number)
  }

  private func withOpened<Result>(
    _ object: borrowing NodeTable.Reference, _ body: (FD) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    let fd = object.fd
    // Opening anything else would do something.
    let status = try fd.status()
    guard status.isRegular || status.isDirectory else { throw .ENOTTY }
    let file = try nodes.openWithRoom { () throws(Errno) in try fd.reopened(O_RDONLY | O_NONBLOCK) }
    return try body(file.fd)
  }
}

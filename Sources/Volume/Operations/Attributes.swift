// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import Fuse
internal import Glibc
package import LinuxIO
internal import Policy

// What is known about an object: attributes, and who may ask.

extension View {
  package func attributes(of node: NodeID, by caller: Caller) throws(Errno) -> Attributes {
    let object = try nodes.pin(node)
    return attributes(try object.fd.status(), of: node)
  }

  package func extendedStatus(of node: NodeID, into bytes: UnsafeMutableRawPointer) throws(Errno) -> Double {
    let object = try nodes.pin(node)
    try object.fd.extendedStatus(mask: CLX_STATX_BASIC_STATS | CLX_STATX_BTIME, into: bytes)
    return attributeValidity(try object.fd.status(), of: node)
  }

  package func access(_ node: NodeID, mask: Int32, by caller: Caller) throws(Errno) {
    var rights: Rights = []
    if mask & R_OK != 0 { rights.insert(.read) }
    if mask & W_OK != 0 { rights.insert(.write) }
    if mask & X_OK != 0 { rights.insert(.execute) }
    let object = try nodes.pin(node)
    try authorize(rights, on: try object.fd.status(), zone: object.zone, by: caller)
  }

  package func statistics(of node: NodeID) throws(Errno) -> FilesystemStatus {
    let object = try nodes.pin(node)
    return try object.fd.filesystemStatus()
  }

  /// The attributes with the time for which they hold.
  func attributes(_ status: FileStatus, of node: NodeID) -> Attributes {
    Attributes(status, validity: attributeValidity(status, of: node))
  }

  /// For how long the kernel may answer with these attributes itself.
  ///
  /// With passthrough we see no write; but the kernel does, forgets the attributes by itself, and drops a reply of ours that
  /// a write has overtaken. What it does not see is a store through a memory map. So nothing is kept while the file is open in
  /// a way that lets it be mapped for writing, and since a map can outlive its descriptor, the backing filesystem is asked once
  /// after the last such close whether the file is still held open for writing.
  private func attributeValidity(_ status: FileStatus, of node: NodeID) -> Double {
    let cacheSeconds = volume.settings.cacheSeconds
    let noted = nodes.with(node) { node -> (mayChange: Bool, ask: Bool) in
      if node.mappers > 0 { return (true, false) }
      if node.flags.contains(.mayBeMapped) { return (true, true) }
      if cacheSeconds > 0 { node.flags.insert(.attributesCached) }
      return (false, false)
    }
    guard let noted else { return 0 }
    guard noted.mayChange else { return cacheSeconds }
    guard noted.ask, status.isRegular, !isHeldForWriting(node) else { return 0 }
    let settled = nodes.with(node) { node in
      guard node.mappers == 0 else { return false }
      node.flags.remove(.mayBeMapped)
      node.flags.insert(.attributesCached)
      return true
    }
    return settled == true ? cacheSeconds : 0
  }

  private func isHeldForWriting(_ node: NodeID) -> Bool {
    guard let object = try? nodes.pin(node) else { return true }
    // O_NONBLOCK: where someone has a lease on the file, opening it would wait for them.
    guard let file = try? object.fd.reopened(O_RDONLY | O_NONBLOCK) else { return true }
    return file.fd.isOpenForWriting()
  }
}

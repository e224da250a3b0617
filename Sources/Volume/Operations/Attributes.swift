// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import Fuse
internal import Glibc
package import LinuxIO
internal import Policy

// What is known about an object: attributes, and who may ask.

extension View {
  package func attributes(of node: NodeID, handle: HandleID?, by caller: Caller) throws(Errno) -> Attributes {
    let object = try nodes.pin(node)
    let status = try object.fd.status()
    try authorizeLook(at: object, status, handle: handle, by: caller)
    return attributes(status, of: node)
  }

  package func extendedStatus(
    of node: NodeID, handle: HandleID?, into bytes: UnsafeMutableRawPointer, by caller: Caller
  ) throws(Errno) -> Double {
    let object = try nodes.pin(node)
    let status = try object.fd.status()
    try authorizeLook(at: object, status, handle: handle, by: caller)
    try object.fd.extendedStatus(mask: CLX_STATX_BASIC_STATS | CLX_STATX_BTIME, into: bytes)
    return attributeValidity(status, of: node)
  }

  /// Throws unless the caller may see the object's attributes, which only a list can forbid.
  ///
  /// With a handle the kernel itself asks, for a read or a seek in a file that is open.
  private func authorizeLook(
    at node: borrowing NodeTable.Pin, _ status: FileStatus, handle: HandleID?, by caller: Caller
  ) throws(Errno) {
    if handle != nil { return }
    let object = object(status, node)
    if object.hasList { try authorize([.readAttributes, .readSecurity], on: object, by: caller) }
  }

  package func access(_ node: NodeID, mask: Int32, by caller: Caller) throws(Errno) {
    let object = try nodes.pin(node)
    let status = try object.fd.status()
    var rights: Rights = []
    if mask & R_OK != 0 { rights.insert(.read) }
    if mask & W_OK != 0 { rights.formUnion(status.isDirectory ? [.addFile, .addSubdirectory] : .write) }
    if mask & X_OK != 0 { rights.insert(.execute) }
    try authorize(rights, on: self.object(status, object), by: caller)
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
  ///
  /// Nor is anything kept where a list may refuse someone to see it: the kernel would not ask.
  private func attributeValidity(_ status: FileStatus, of node: NodeID) -> Double {
    if nodes.with(node, { $0.flags.contains(.securityKnown) }) == false, let object = try? nodes.pin(node) {
      learnSecurity(of: object)
    }
    let cacheSeconds = volume.settings.cacheSeconds
    let noted = nodes.with(node) { node -> (mayChange: Bool, ask: Bool) in
      // Not known: it has been changed just now, or can't be read.
      let isForAll = node.flags.isDisjoint(with: .hidesAttributes) && node.flags.contains(.securityKnown)
      if !isForAll || node.mappers > 0 { return (true, false) }
      if node.flags.contains(.mayBeMapped) { return (true, true) }
      if cacheSeconds > 0 { node.flags.insert(.attributesCached) }
      return (false, false)
    }
    guard let noted else { return 0 }
    guard noted.mayChange else { return cacheSeconds }
    guard noted.ask, status.isRegular, !isHeldForWriting(node) else { return 0 }
    let settled = nodes.with(node) { node in
      guard node.mappers == 0, node.flags.contains(.securityKnown), !node.flags.contains(.hidesAttributes)
      else { return false }
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

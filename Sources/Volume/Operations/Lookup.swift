// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Fuse
internal import Glibc
package import LinuxIO
internal import Policy

// Finding objects by name, and forgetting them.

extension View {
  package func lookup(_ name: Name, in parent: NodeID, by caller: Caller) throws(Errno) -> Entry {
    let directory = try nodes.pin(parent)
    let status = try directory.fd.status()
    try authorize(.search, on: status, zone: directory.zone, by: caller)
    do throws(Errno) {
      return try entry(name, in: directory, status, by: caller)
    } catch .ENOENT {
      let validity = entryValidity(in: status, zone: directory.zone)
      guard validity > 0 else { throw .ENOENT }
      noteChildrenCached(directory.id)
      return .absent(validity: validity)
    }
  }

  package func forget(_ node: NodeID, count: UInt64) { nodes.forget(node, count: count) }

  /// What a name in a directory stands for, with one lookup counted.
  func entry(
    _ name: Name, in directory: borrowing NodeTable.Pin, _ directoryStatus: FileStatus, by caller: Caller
  ) throws(Errno) -> Entry {
    let parent = directory.fd
    let object = try nodes.openWithRoom { () throws(Errno) in try parent.child(name) }
    return try entry(object, name, in: directory, directoryStatus, by: caller)
  }

  /// The entry of an object that was just found or made in a directory; `isMapped` says that its maker may map it.
  func entry(
    _ object: consuming OwnedFD, _ name: Name, in directory: borrowing NodeTable.Pin,
    _ directoryStatus: FileStatus,
    isMapped: Bool = false, by caller: Caller
  ) throws(Errno) -> Entry {
    let status = try object.fd.status()
    let zone = directory.zone.zone(of: name)
    var validity = entryValidity(in: directoryStatus, zone: directory.zone)
    if !status.isDirectory, !status.isRegular, !status.isSymlink {
      let isForAll = try authorizeMeetingPoint(status, zone: zone, by: caller)
      if !isForAll, !isPrivate { validity = 0 }
    }
    let node = try nodes.intern(object, status, named: name, in: directory.id, zone: zone)
    if validity > 0 { noteChildrenCached(directory.id) }
    let attributes = isMapped ? Attributes(status, validity: 0) : attributes(status, of: node)
    return Entry(node: node, attributes: attributes, validity: validity)
  }

  private func noteChildrenCached(_ directory: NodeID) {
    _ = nodes.with(directory) { $0.flags.insert(.childrenCached) }
  }
}

extension Zone {
  /// The zone of a child, without looking at its name where that makes no difference.
  func zone(of name: Name) -> Zone {
    namesMatter ? zone(of: name.buffer) : zone(of: EmptyCollection())
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy

// What becomes of a view's nodes when an object gets another name, through whichever view.

extension PeerView {
  /// An object has another name now, whichever view it was given through, in a directory that this one may
  /// not know.
  func noteMoved(
    _ object: ObjectNumber, to name: Name, in directory: ChangedDirectory, zone: Zone, by payer: Payer
  ) {
    var moved: NodeTable.Moved?
    while moved == nil {
      let numbering = scope.numbering
      moved = nodes.moved(
        object, to: name, in: directory.number, zone: zone,
        position: position(of: name, object, in: directory.number, directory.fd),
        isUniform: scope.isUniform
      ) {
        scope.numbering == numbering
      }
    }
    guard let moved else { return }
    if moved.isLost {
      // Until the kernel asks for it by a name of a directory that is known here.
      nodes.hold(
        object, losing: name, in: .root, isLast: true, by: payer
      ) { () throws(Errno) in try directory.fd.child(name) }
    }
    if moved.namesMatter { updateZones(below: name, in: directory.fd, zone) }
  }

  /// Gives what is known below a directory that has come to where names matter (a home, a container) its
  /// zones.
  ///
  /// No deeper than names matter, so it is not far to the end.
  private func updateZones(below name: Name, in parent: FD, _ zone: Zone) {
    guard let directory = try? nodes.openWithRoom({ () throws(Errno) in try parent.openDirectory(name) }),
      // Few of them matter, however many there are.
      let entries = try? directory.fd.entries(where: { name, _ in
        volume.plainZone(of: name.buffer, in: zone) != zone.inside
      })
    else {
      return
    }
    for entry in entries {
      let child = volume.plainZone(of: entry.name, in: zone)
      try? entry.name.withName { (name) throws(Errno) in
        let status = try directory.fd.status(of: name)
        nodes.setZone(
          child, of: ObjectNumber(status), withAllBelow: child.inside != zone.inside)
        if child.namesMatter, status.isDirectory { updateZones(below: name, in: directory.fd, child) }
      }
    }
  }

  /// Where a name is that an object was given through whichever view, in a directory that this one may not
  /// know.
  private func position(
    of name: Name, _ object: ObjectNumber, in parent: ObjectNumber, _ directory: FD
  ) -> Position {
    // Most views are of the whole tree, or all of it that they know is.
    if scope.root.throughout != nil { return scope.root }
    if let known = nodes.with(parent, { $1.position }) {
      return scope.position(of: name, in: known, object: SiblingObject(object))
    }
    return positionThroughout(directory) ?? positionByPath(of: name, in: directory)
  }

  /// The position by the path that a directory has now: something that was granted may have been moved to
  /// where the view knows nothing yet.
  private func positionByPath(of name: Name, in directory: FD) -> Position {
    guard let path = volume.path(of: directory) else { return .nowhere }
    return scope.ask { $0.position(at: path + [Array(name.buffer)]) }
  }

  /// The position of a directory that is in a part of the tree that is all in the same reach, found by
  /// climbing to one that is known; nil where the names on the way matter, which are looked up when they are
  /// next used.
  private func positionThroughout(_ directory: FD) -> Position? {
    var above = try? directory.openParent()
    // No tree is as deep as this; it only bounds what a damaged one could do.
    for _ in 0..<10_000 {
      guard let directory = above?.fd, let status = try? directory.status() else { return nil }
      if let known = nodes.with(ObjectNumber(status), { $1.position }) {
        return scope.isUniform(known) ? known : nil
      }
      above = try? directory.openParent()
    }
    return nil
  }
}

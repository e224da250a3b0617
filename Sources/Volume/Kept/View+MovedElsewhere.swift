// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

// What another view has moved to a directory that this one has not looked up since.
//
// Its node has no parent from which a new worker could tell its position, and nobody may ask for it by name
// again: it is open, or somebody works in it. So it is found by the path that the kernel knows.

extension View {
  /// The positions of nodes in directories that this view does not know, as far as its user's steps last; the
  /// others are looked up again.
  func positionsElsewhere(in scope: Scope) -> [ObjectNumber: Position] {
    var found: [ObjectNumber: Position] = [:]
    for id in nodes.movedElsewhere {
      // To ask a server could mean to wait for it.
      guard mayWalk(Self.stepsToName), let number = nodes.number(of: id),
        volume.attached.queue(ofDevice: number.device) == nil,
        let object = try? nodes.referenceAnywhere(to: id, isNamed: false)
      else { continue }
      if let position = position(of: object.fd, number, in: scope) { found[number] = position }
    }
    return found
  }

  /// Where an object is; what has been removed is where its directory is, if all in there is in one reach.
  ///
  /// A name in a path may be anybody's by now, so what it leads to is compared.
  func position(of object: FD, _ number: ObjectNumber, in scope: Scope) -> Position? {
    guard let status = try? object.status(), let path = volume.kernelPath(of: object), !path.isEmpty,
      mayWalk(path.count)
    else { return nil }
    let resolved = volume.resolvedPath(along: path, for: nil)
    if resolved.found?.number == number { return scope.position(at: path) }
    guard status.st_nlink == 0 else { return nil }
    // The last step was not made, or leads to something else.
    let position = scope.position(at: Array(path.prefix(max(0, resolved.steps.count - 1))))
    return scope.isUniform(position) ? position : nil
  }
}

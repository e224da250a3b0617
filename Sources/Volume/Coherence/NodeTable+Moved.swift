// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Policy
internal import Synchronization

// What becomes of nodes when their objects get other names, through whichever view.

extension NodeTable {
  /// What follows for a table from an object's having another name.
  struct Moved {
    /// What is below it may have come into other zones, and into which depends on names, which are not known
    /// here.
    var namesMatter = false
    /// It can't be looked for by that name, and there are no handles.
    var isLost = false
  }

  /// An object has another name now, in a directory that this table may not know.
  ///
  /// What is below it may have come into another zone, and to another part of the view's scope. Nil, and
  /// nothing is noted, if the position is not one of the current numbering.
  func moved(
    _ object: ObjectNumber, to name: Name, in parent: ObjectNumber, zone: Zone, position: Position = .whole,
    isUniform: (Position) -> Bool = { $0.throughout != nil }, isCurrent: () -> Bool = { true }
  ) -> Moved? {
    state.withLock { state in
      guard isCurrent() else { return nil }
      guard let index = state.find(object), index != Self.rootIndex else {
        return Moved()
      }
      let node = state.slab[index]
      let rezone = node.pointee.flags.contains(.isDirectory) && !zone.hasSameInside(as: node.pointee.zone)
      // Slot 0 is nobody's.
      let parent = state.find(parent) ?? 0
      node.pointee.parent = parent
      state.noteWhereEntered(index)
      let isElsewhere = node.pointee.position != position && node.pointee.flags.contains(.isDirectory)
      node.pointee.setPosition(position)
      state.setZone(zone, of: index)
      if handleRoot == nil || node.pointee.isOnVolume { state.remember(name, of: index) }
      if rezone { state.rezone(below: index) }
      if isElsewhere { state.reposition(below: index, to: isUniform(position) ? position : .nowhere) }
      return Moved(namesMatter: rezone && zone.namesMatter, isLost: parent == 0 && handleRoot == nil)
    }
  }

  /// Gives the node of an object that has a name now, if there is one, a zone, and all that is known below it
  /// the one that things have in there.
  func setZone(_ zone: Zone, of object: ObjectNumber, withAllBelow: Bool) {
    state.withLock { state in
      guard let index = state.find(object), index != Self.rootIndex else { return }
      state.setZone(zone, of: index)
      if withAllBelow { state.rezone(below: index) }
    }
  }
}

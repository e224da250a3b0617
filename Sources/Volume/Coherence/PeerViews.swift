// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Policy

/// All views of a volume but one.
///
/// With a single view, each call reads one counter.
struct PeerViews {
  let volume: Volume
  /// The number of the one.
  let number: UInt32

  /// Calls `body` for each that knows an object.
  func forEach(knowing object: ObjectNumber, _ body: (PeerView) -> Void) {
    volume.forEachView(knowing: object, besides: number, body)
  }

  /// Whether any other view knows an object.
  func know(_ object: ObjectNumber) -> Bool {
    guard volume.views.areSeveral else { return false }
    return !volume.interest.views(of: object, besides: number).isEmpty
      || volume.views.unindexed(besides: number)?.nodes.with(object) { _, _ in true } == true
  }

  /// An object is about to be written to, or has lost or changed its name.
  ///
  /// From now on it does not belong to an app that created it beside a granted file.
  func loseSibling(_ object: ObjectNumber) {
    if volume.siblings.isEmpty { return }
    for number in volume.siblings.views(of: object) where number != self.number {
      volume.views[number]?.siblings.lose(object)
    }
  }

  /// Attributes of an object have changed.
  func attributesChanged(of object: ObjectNumber) {
    forEach(knowing: object) { $0.memory.invalidate(.attributes, of: object) }
  }

  /// What a file has in it has changed, and its attributes.
  func contentsChanged(of file: ObjectNumber) {
    forEach(knowing: file) { $0.memory.invalidate([.attributes, .contents], of: file) }
  }

  /// The rights to an object have changed.
  ///
  /// If it is a directory that is now closed to some users, its names are withdrawn.
  func rightsChanged(
    of object: ObjectNumber, from before: Object, to after: Object, _ cached: CachedState = .attributes
  ) {
    forEach(knowing: object) { other in
      let closes = other.memory.audience.isClosed(by: before, after)
      other.memory.invalidate(closes ? cached.union(.names) : cached, of: object)
    }
  }
}

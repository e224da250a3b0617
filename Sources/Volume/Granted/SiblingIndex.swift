// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Synchronization

/// Which views have an object as a sibling of a granted file; see `Scope+Siblings.swift`.
///
/// Whoever writes to an object or takes its name asks here. Where no app saves anything that is a read of a
/// counter.
final class SiblingIndex: Sendable {
  private let count = Atomic<Int>(0)
  private let state = OrderedMutex<[SiblingObject.Number: Set<UInt32>]>(.siblings, [:])

  var isEmpty: Bool { count.load(ordering: .sequentiallyConsistent) == 0 }

  func views(of object: ObjectNumber) -> Set<UInt32> {
    if isEmpty { return [] }
    return state.withLock { $0[SiblingObject.Number(object)] ?? [] }
  }

  /// A view had these, and has those now.
  func change(_ old: [SiblingObject.Number], to new: [SiblingObject.Number], of view: UInt32) {
    if old == new { return }
    let (old, new) = (Set(old), Set(new))
    state.withLock { state in
      for object in old.subtracting(new) { Self.remove(object, view, &state) }
      for object in new.subtracting(old) { state[object, default: []].insert(view) }
      count.store(state.count, ordering: .sequentiallyConsistent)
    }
  }

  func remove(_ objects: [SiblingObject.Number], of view: UInt32) { change(objects, to: [], of: view) }

  private static func remove(
    _ object: SiblingObject.Number, _ view: UInt32, _ state: inout [SiblingObject.Number: Set<UInt32>]
  ) {
    state[object]?.remove(view)
    if state[object]?.isEmpty == true { state[object] = nil }
  }
}

extension SiblingObject.Number {
  init(_ object: ObjectNumber) { self.init(inode: object.inode, device: object.device) }
}

extension SiblingObject {
  /// Whatever has that number now.
  init(_ object: ObjectNumber) { self.init(Number(object), mark: nil) }

  init(_ identity: Identity) {
    let handle = identity.handle
    self.init(
      Number(inode: identity.inode, device: identity.device),
      mark: [
        handle.bytes[0], handle.bytes[1], handle.bytes[2], UInt64(handle.type) << 8 | UInt64(handle.length),
      ])
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Synchronization

// Lookups that nobody gives back.
//
//  1. A worker that dies may have counted a lookup, or a page of them, for a request that the kernel then
//     sends again; and what the kernel had told it to forget is told nobody again. So nodes stay whose
//     objects the kernel no longer knows.
//  2. The kernel says whether it has an object. Of one that it does not have no lookups are left, but for
//     those in answers that it has yet to process.
//  3. So another worker asks the kernel of all nodes that it has taken over; and of each of these again when
//     the kernel has forgotten it, and lookups are left. A node goes if the kernel has not had it twice, with
//     the time between that an answer may take, and nobody has looked it up meanwhile.

/// Nodes that another worker has left and that may have too many lookups.
struct LeftLookups {
  /// The highest generation that it has given to a node; 0 without one.
  private(set) var generation: UInt32 = 0
  /// The next slot to ask about; nil when all have been.
  private var next: UInt32?
  /// What the kernel has forgotten since.
  private var forgotten: [NodeID] = []
  private static let mostForgotten = 1 << 16

  init() {}

  init(upTo generation: UInt32) {
    self.generation = generation
    next = NodeTable.rootIndex + 1
  }

  /// The kernel has forgotten a node, and lookups are left.
  mutating func note(_ id: NodeID) {
    guard forgotten.count < Self.mostForgotten else {
      // Too many to note: all are asked about once more.
      next = next ?? NodeTable.rootIndex + 1
      forgotten = []
      return
    }
    forgotten.append(id)
  }

  /// The next ones to ask about, with their lookups, at most so many; nil when there are none now.
  mutating func take(_ most: Int, in slab: Slab<Node>) -> [Counted]? {
    var taken: [Counted] = []
    func add(_ index: UInt32, _ generation: UInt32) {
      guard let node = slab.slot(index), node.pointee.isInUse, node.pointee.generation == generation else {
        return
      }
      taken.append(Counted(id: NodeTable.id(index, generation), lookups: node.pointee.lookups))
    }
    if let first = next, first < slab.end {
      let last = min(slab.end, first + UInt32(most))
      for index in first..<last {
        guard let node = slab.slot(index), node.pointee.generation <= generation else { continue }
        add(index, node.pointee.generation)
      }
      next = last
      return taken
    }
    next = nil
    guard !forgotten.isEmpty else { return nil }
    for id in forgotten.suffix(most) {
      add(UInt32(truncatingIfNeeded: id.raw), UInt32(truncatingIfNeeded: id.raw >> 32))
    }
    forgotten.removeLast(min(most, forgotten.count))
    return taken
  }

  struct Counted {
    let id: NodeID
    let lookups: UInt64
  }
}

extension NodeTable {
  /// The nodes that another worker has left and that are to be asked about next.
  fileprivate func takeLeft(_ most: Int) -> [LeftLookups.Counted]? {
    state.withLock { $0.left.take(most, in: $0.slab) }
  }

  /// Takes all lookups of a node back that there were, if there are no more now, and the last answer with one
  /// is older than `seconds`; false if that is to be asked again.
  fileprivate func forgetLeft(_ node: LeftLookups.Counted, olderThan seconds: UInt32) -> Bool {
    let now = coarseSeconds()
    let isSo = with(node.id) { found in
      found.lookups == node.lookups && found.references == 0
        && (found.entrySentAt == 0 || now &- found.entrySentAt > seconds)
    }
    if isSo == true { forget(node.id, count: node.lookups) }
    return isSo != false
  }
}

/// Asks the kernel about what another worker has left of a view; used by one thread.
package final class LeftNodes: @unchecked Sendable {
  // Unchecked: see above.
  private weak var view: View?
  /// Those that the kernel did not have.
  private var missing: [LeftLookups.Counted] = []
  private static let step = 4096
  /// How long an answer may take to be processed: until the client that waits for it is scheduled.
  private static let arrivalSeconds: UInt32 = 10
  /// After this time what was missing can be asked about again.
  package static let milliseconds: Int32 = 12_000

  package init(_ view: View) { self.view = view }

  /// Asks about all that there is to ask about; whether something is to be asked about again.
  package func ask() -> Bool {
    guard let view else { return false }
    var again: [LeftLookups.Counted] = []
    view.kernel.notify { connection in
      again = missing.filter { node in
        !connection.has(node.id) && !view.nodes.forgetLeft(node, olderThan: Self.arrivalSeconds)
      }
    }
    // Their lookups may be others by now.
    missing = again.compactMap { node in
      view.nodes.with(node.id) { LeftLookups.Counted(id: node.id, lookups: $0.lookups) }
    }
    while let nodes = view.nodes.takeLeft(Self.step) {
      view.kernel.notify { connection in missing += nodes.filter { !connection.has($0.id) } }
    }
    return !missing.isEmpty
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Synchronization

// Taking over the nodes that another worker has left.

extension NodeTableState {
  /// Finds out which slots are in use.
  mutating func restore() {
    slab.restore()
    names.restore()
  }

  /// Enters all nodes but the root where they are looked for, with those descriptors that are what they
  /// should be.
  mutating func adoptRestored(withDescriptors keepsDescriptors: Bool, capacity: Int) {
    var size = bucketCount
    while size < slab.count { size *= 2 }
    if size > bucketCount { resizeBuckets(size) }
    var highest: UInt32 = 0
    slab.forEach { index, node in
      guard index != NodeTable.rootIndex else { return }
      highest = max(highest, node.pointee.generation)
      node.pointee.forgetWorker()
      let descriptor = node.pointee.descriptor
      node.pointee.descriptor = -1
      expect(index + 16)
      insert(index)
      guard keepsDescriptors, Self.isOpen(descriptor, as: node.pointee), clock.count < capacity else {
        node.pointee.flags.remove(.descriptorIsLastHold)
        return
      }
      descriptorsTakenOver.append(descriptor)
      if node.pointee.flags.contains(.descriptorIsLastHold) {
        keepHeld(descriptor, index)
      } else {
        _ = adopt(descriptor, for: index, capacity: capacity)
      }
    }
    generation = highest
    left = LeftLookups(upTo: highest)
  }

  private static func isOpen(_ descriptor: Int32, as node: Node) -> Bool {
    guard descriptor > STDERR_FILENO, let status = try? FD(descriptor).statusInMemory() else { return false }
    return ObjectNumber(status) == node.number
  }
}

extension NodeTable {
  /// The directory through which a node in a read-only region was found; nil for any other node.
  func parentInReadOnlyRegion(of id: NodeID) -> NodeID? {
    state.withLock { state in
      guard let index = state.index(of: id), state.slab[index].pointee.zone.isReadOnlyRegion,
        let parent = state.slab.slot(state.slab[index].pointee.parent), parent.pointee.isInUse
      else { return nil }
      return Self.id(state.slab[index].pointee.parent, parent.pointee.generation)
    }
  }

  /// Whether a descriptor that another worker has left is one of the node's object, for reading or writing;
  /// so is none at all.
  ///
  /// The one that the node itself has only names it.
  private func isOpened(_ id: NodeID, by descriptor: Int32) -> Bool {
    guard let number = number(of: id) else { return false }
    if descriptor < 0 { return true }
    guard keepsDescriptors, descriptor > STDERR_FILENO,
      let status = try? FD(descriptor).statusInMemory()
    else { return false }
    return ObjectNumber(status) == number && fcntl(descriptor, F_GETFL) & CLX_O_PATH == 0
  }

  /// An open file with a descriptor of its own object; nil if it can't have one.
  ///
  /// That of another worker is lost if the keeper has ended as well: then it is opened again.
  func mended(_ record: OpenFile.Record, in volume: Volume) -> OpenFile.Record? {
    let id = NodeID(record.node)
    let flags = OpenFile.Access(rawValue: record.access).openFlags | O_NONBLOCK
    var mended = record
    do throws(Errno) {
      mended.descriptor = try opened(record.descriptor, of: id, flags, in: volume)
      mended.appending = try opened(record.appending, of: id, flags | O_APPEND, in: volume)
      return mended
    } catch {
      return nil
    }
  }

  private func opened(
    _ descriptor: Int32, of id: NodeID, _ flags: Int32, in volume: Volume
  ) throws(Errno) -> Int32 {
    if isOpened(id, by: descriptor) { return descriptor }
    let object = try reference(to: id)
    return try openWithRoom { () throws(Errno) in try volume.openForData(object.fd, flags) }.release().raw
  }

  /// An open directory with its own descriptor, or without one: it is opened again when it is listed.
  func mended(_ record: OpenDirectory.Record) -> OpenDirectory.Record? {
    var mended = record
    if !isOpened(NodeID(record.node), by: record.descriptor) { mended.descriptor = -1 }
    return number(of: NodeID(record.node)) == nil ? nil : mended
  }

  /// Notes what a seal says of a node.
  func seal(_ id: NodeID, _ sealed: SealedNode) {
    state.withLock { state in if let index = state.index(of: id) { state.seal(index, sealed) } }
  }

  /// The nodes that are in directories that this table does not know: other views have moved them there.
  var movedElsewhere: [NodeID] {
    state.withLock { state in
      var found: [NodeID] = []
      state.slab.forEach { index, node in
        if index == Self.rootIndex || state.slab.slot(node.pointee.parent)?.pointee.isInUse == true { return }
        found.append(Self.id(index, node.pointee.generation))
      }
      return found
    }
  }

  /// The nodes that are at most so many names below some directories.
  func below(_ directories: [ObjectNumber: Int]) -> [(id: NodeID, number: ObjectNumber)] {
    guard let deepest = directories.values.max() else { return [] }
    return state.withLock { state in
      var found: [(id: NodeID, number: ObjectNumber)] = []
      state.slab.forEach { index, node in
        guard index != Self.rootIndex else { return }
        var parent = node.pointee.parent
        for depth in 1...max(1, deepest) {
          guard let above = state.slab.slot(parent), above.pointee.isInUse else { return }
          if directories[above.pointee.number].map({ depth <= $0 }) == true {
            found.append((Self.id(index, node.pointee.generation), node.pointee.number))
            return
          }
          parent = above.pointee.parent
        }
      }
      return found
    }
  }

  /// Gives all nodes their positions in a scope that was made again, which numbers its places otherwise.
  ///
  /// `places` are the objects whose positions are known; all others are inside of one of those. If these are
  /// not all, the others have to be looked up again: each may be one that is private.
  func relocate(in scope: Scope, _ places: [ObjectNumber: Position], isWhole: Bool = true) {
    state.withLock { state in
      var settled: [UInt32: Position] = [Self.rootIndex: scope.root]
      state.slab.forEach { index, _ in
        // Those above it first, down from one that is known.
        var way: [UInt32] = []
        var at = index
        while settled[at] == nil, way.count < 100_000, let node = state.slab.slot(at), node.pointee.isInUse {
          way.append(at)
          settled[at] = .nowhere
          at = node.pointee.parent
        }
        for index in way.reversed() {
          let node = state.slab[index]
          let above = settled[node.pointee.parent] ?? .nowhere
          let isInside = isWhole && above != .nowhere
          let position = places[node.pointee.number] ?? (isInside ? scope.inside(above) : .nowhere)
          settled[index] = position
          node.pointee.setPosition(position)
        }
      }
    }
  }

  /// The descriptors that its nodes have taken over.
  var descriptorsTakenOver: [Int32] { state.withLock { $0.descriptorsTakenOver } }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc

/// Memory for nodes: slots in chunks of pages, which go back to the system when they are empty.
///
/// Slot 0 is never given out, so that 0 can stand for none.
struct NodeSlab {
  /// 4096 slots of about a hundred bytes: large enough for its own mapping, small enough to become empty.
  private static let chunkShift = 12
  private static let chunkSize = 1 << chunkShift

  private struct Chunk {
    var nodes: UnsafeMutablePointer<Node>?
    var used = 0
    var firstFree: UInt32 = 0
    /// Slots from here on have never been used.
    var fresh = 0
  }
  private var chunks: [Chunk] = []
  /// Chunks that may have room; each is looked at again when it turns out to be full.
  private var open: [Int] = []
  private(set) var count = 0

  /// The node in a slot; nil if there never was one, or its chunk has gone.
  func slot(_ index: UInt32) -> UnsafeMutablePointer<Node>? {
    let chunk = Int(index) >> Self.chunkShift
    guard chunk < chunks.count, let nodes = chunks[chunk].nodes else { return nil }
    return nodes + Int(index) & (Self.chunkSize - 1)
  }

  /// Like ``slot(_:)``, for an index that is known to be in use.
  subscript(_ index: UInt32) -> UnsafeMutablePointer<Node> {
    guard let node = slot(index) else { preconditionFailure("a node in use has a slot") }
    return node
  }

  /// Visits every node in use.
  func forEach(_ body: (UInt32, UnsafeMutablePointer<Node>) -> Void) {
    for (number, chunk) in chunks.enumerated() {
      guard let nodes = chunk.nodes else { continue }
      for offset in 0..<chunk.fresh where nodes[offset].flags.contains(.inUse) {
        body(UInt32(number << Self.chunkShift + offset), nodes + offset)
      }
    }
  }

  /// Takes a free slot; nil when there is no memory, or there are four billion nodes.
  mutating func allocate() -> UInt32? {
    while let chunk = open.last {
      if let index = take(in: chunk) {
        count += 1
        return index
      }
      open.removeLast()
    }
    guard let chunk = addChunk() else { return nil }
    open.append(chunk)
    guard let index = take(in: chunk) else { return nil }
    count += 1
    return index
  }

  /// Gives a slot back.
  mutating func free(_ index: UInt32) {
    let chunk = Int(index) >> Self.chunkShift
    let node = self[index]
    node.pointee.flags = []
    node.pointee.next = chunks[chunk].firstFree
    if chunks[chunk].used == Self.capacity(of: chunk) { open.append(chunk) }
    chunks[chunk].firstFree = index
    chunks[chunk].used -= 1
    count -= 1
    if chunks[chunk].used == 0, chunk > 0 { removeChunk(chunk) }
  }

  private static func capacity(of chunk: Int) -> Int { chunk == 0 ? chunkSize - 1 : chunkSize }

  private mutating func take(in chunk: Int) -> UInt32? {
    guard let nodes = chunks[chunk].nodes else { return nil }
    let base = chunk << Self.chunkShift
    let index: UInt32
    if chunks[chunk].firstFree != 0 {
      index = chunks[chunk].firstFree
      chunks[chunk].firstFree = nodes[Int(index) - base].next
    } else if chunks[chunk].fresh < Self.chunkSize {
      index = UInt32(base + chunks[chunk].fresh)
      chunks[chunk].fresh += 1
    } else {
      return nil
    }
    chunks[chunk].used += 1
    (nodes + (Int(index) - base)).initialize(to: Node())
    return index
  }

  private static let bytes = chunkSize * MemoryLayout<Node>.stride

  private mutating func addChunk() -> Int? {
    let chunk = chunks.firstIndex { $0.nodes == nil } ?? chunks.count
    guard chunk < Int(UInt32.max) >> Self.chunkShift else { return nil }
    let memory = mmap(nil, Self.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    guard let memory, memory != MAP_FAILED else { return nil }
    var added = Chunk()
    added.nodes = memory.bindMemory(to: Node.self, capacity: Self.chunkSize)
    added.fresh = chunk == 0 ? 1 : 0
    if chunk == chunks.count { chunks.append(added) } else { chunks[chunk] = added }
    return chunk
  }

  /// Gives all memory back, whatever is in it.
  mutating func removeAll() {
    for chunk in chunks { if let nodes = chunk.nodes { munmap(nodes, Self.bytes) } }
    self = NodeSlab()
  }

  private mutating func removeChunk(_ chunk: Int) {
    if let nodes = chunks[chunk].nodes { munmap(nodes, Self.bytes) }
    chunks[chunk] = Chunk()
    open.removeAll { $0 == chunk }
  }
}

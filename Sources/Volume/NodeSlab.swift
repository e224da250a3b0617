// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// Memory for nodes: slots, each at a place that its index says, in memory that can outlive the daemon.
///
/// Only the slots are there. Which of them are free can be seen from their flags, so that is noted beside
/// them, by chunks, whose pages go back to the system when they are empty. Slot 0 is never given out, so that
/// 0 can stand for none.
struct NodeSlab {
  /// 4096 slots of about a hundred bytes: whole pages, and small enough to become empty.
  private static let chunkShift = 12
  private static let chunkSize = 1 << chunkShift
  private static let chunkBytes = chunkSize * MemoryLayout<Node>.stride
  /// Room is made for so many bytes at a time, since most views know a few names only.
  private static let step = 1 << 14
  /// How many slots there may be; fewer where the daemon may not map so much.
  private static let shifts = [26, 23, 20]

  private struct Chunk {
    var used = 0
    var firstFree: UInt32 = 0
    /// Slots from here on have never been used.
    var fresh = 0
    /// For so many bytes there is room.
    var room = 0
  }

  private var memory: SharedMemory?
  private var nodes: UnsafeMutablePointer<Node>?
  private var capacity = 0
  private var chunks: [Chunk] = []
  /// Chunks that may have room; each is looked at again when it turns out to be full.
  private var open: [Int] = []
  private(set) var count = 0

  /// The node in a slot; nil if there never was one, or its chunk has gone.
  func slot(_ index: UInt32) -> UnsafeMutablePointer<Node>? {
    let chunk = Int(index) >> Self.chunkShift
    guard let nodes, chunk < chunks.count, Int(index) & (Self.chunkSize - 1) < chunks[chunk].fresh else {
      return nil
    }
    return nodes + Int(index)
  }

  /// Like ``slot(_:)``, for an index that is known to be in use.
  subscript(_ index: UInt32) -> UnsafeMutablePointer<Node> {
    guard let nodes, Int(index) < capacity else { preconditionFailure("a node in use has a slot") }
    return nodes + Int(index)
  }

  /// Visits every node in use.
  func forEach(_ body: (UInt32, UnsafeMutablePointer<Node>) -> Void) {
    guard let nodes else { return }
    for (number, chunk) in chunks.enumerated() {
      let first = number << Self.chunkShift
      for index in first..<(first + chunk.fresh) where nodes[index].flags.contains(.inUse) {
        body(UInt32(index), nodes + index)
      }
    }
  }

  /// Takes a free slot; nil when there is no memory, or there are as many nodes as can be.
  mutating func allocate() -> UInt32? {
    while let chunk = open.last {
      if let index = take(in: chunk) { return index }
      // Without memory it stays open, for when there is some.
      if chunks[chunk].used < Self.capacity(of: chunk) { return nil }
      open.removeLast()
    }
    guard let chunk = addChunk() else { return nil }
    open.append(chunk)
    return take(in: chunk)
  }

  /// Gives a slot back.
  mutating func free(_ index: UInt32) {
    let chunk = Int(index) >> Self.chunkShift
    let node = self[index]
    node.pointee.flags = []
    node.pointee.next = chunks[chunk].firstFree
    if chunks[chunk].used == Self.capacity(of: chunk), !open.contains(chunk) { open.append(chunk) }
    chunks[chunk].firstFree = index
    chunks[chunk].used -= 1
    count -= 1
    if chunks[chunk].used == 0, chunk > 0 { removeChunk(chunk) }
  }

  /// Gives all memory back, whatever is in it.
  mutating func removeAll() { self = NodeSlab() }

  private static func capacity(of chunk: Int) -> Int { chunk == 0 ? chunkSize - 1 : chunkSize }

  private mutating func take(in chunk: Int) -> UInt32? {
    guard let nodes else { return nil }
    let index: UInt32
    if chunks[chunk].firstFree != 0 {
      index = chunks[chunk].firstFree
      chunks[chunk].firstFree = nodes[Int(index)].next
    } else if chunks[chunk].fresh < Self.chunkSize, makeRoom(in: chunk, for: chunks[chunk].fresh + 1) {
      index = UInt32(chunk << Self.chunkShift + chunks[chunk].fresh)
      chunks[chunk].fresh += 1
    } else {
      return nil
    }
    chunks[chunk].used += 1
    count += 1
    (nodes + Int(index)).initialize(to: Node())
    return index
  }

  private mutating func makeRoom(in chunk: Int, for slots: Int) -> Bool {
    let room = chunks[chunk].room
    if slots * MemoryLayout<Node>.stride <= room { return true }
    guard let memory else { return false }
    let first = chunk * Self.chunkBytes
    let more = min(room + Self.step, Self.chunkBytes)
    do throws(Errno) {
      try memory.makeRoom((first + room)..<(first + more))
    } catch {
      return false
    }
    chunks[chunk].room = more
    return true
  }

  private mutating func addChunk() -> Int? {
    if memory == nil { map() }
    let chunk = chunks.firstIndex { $0.fresh == 0 } ?? chunks.count
    guard memory != nil, (chunk + 1) << Self.chunkShift <= capacity else { return nil }
    var added = Chunk()
    added.fresh = chunk == 0 ? 1 : 0
    if chunk == chunks.count { chunks.append(added) } else { chunks[chunk] = added }
    return chunk
  }

  private mutating func map() {
    for shift in Self.shifts {
      guard let mapped = try? SharedMemory("insula-nodes", size: MemoryLayout<Node>.stride << shift) else {
        continue
      }
      memory = mapped
      capacity = 1 << shift
      nodes = mapped.base.bindMemory(to: Node.self, capacity: capacity)
      return
    }
  }

  private mutating func removeChunk(_ chunk: Int) {
    let first = chunk * Self.chunkBytes
    memory?.giveBack(first..<(first + Self.chunkBytes))
    chunks[chunk] = Chunk()
    open.removeAll { $0 == chunk }
  }
}

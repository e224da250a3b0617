// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// Something that a ``Slab`` has room for.
protocol SlabSlot {
  /// A slot that is in use.
  init()
  var isInUse: Bool { get }
  /// The next free slot; whoever uses the slot may use it too.
  var next: UInt32 { get set }
  mutating func becomeFree()
  /// Whether what another worker has left at this address can be used; nothing of it may be trusted.
  static func isSound(_ slot: UnsafeRawPointer) -> Bool
}

/// Slots, each at a place that its index says, in memory that outlives the worker.
///
/// Only the slots are there. Which of them are free can be seen from themselves, so that is noted beside
/// them, by chunks, whose pages go back to the system when they are empty. Slot 0 is never given out, so that
/// 0 can stand for none.
struct Slab<Slot: SlabSlot> {
  /// 4096 slots: whole pages, and small enough to become empty.
  private static var chunkShift: Int { 12 }
  private static var chunkSize: Int { 1 << chunkShift }
  private static var chunkBytes: Int { chunkSize * MemoryLayout<Slot>.stride }
  /// Room is made for so many bytes at a time, since most views know a few names only.
  private static var step: Int { 1 << 14 }

  private struct Chunk {
    var used = 0
    var firstFree: UInt32 = 0
    /// Slots from here on have never been used.
    var fresh = 0
    /// For so many bytes there is room.
    var room = 0
  }

  private let region: SharedRegion
  private let slots: UnsafeMutablePointer<Slot>
  private let capacity: Int
  private var chunks: [Chunk] = []
  /// Chunks that may have room; each is looked at again when it turns out to be full.
  private var open: [Int] = []
  private(set) var count = 0

  /// How many bytes so many slots take, a power of two of at least 4096.
  static func size(_ count: Int) -> Int { count * MemoryLayout<Slot>.stride }

  init(in region: SharedRegion) {
    self.region = region
    capacity = region.size / MemoryLayout<Slot>.stride
    slots = region.base.bindMemory(to: Slot.self, capacity: capacity)
  }

  /// The slot of an index; nil if there never was one, or its chunk has gone.
  func slot(_ index: UInt32) -> UnsafeMutablePointer<Slot>? {
    let chunk = Int(index) >> Self.chunkShift
    guard chunk < chunks.count, Int(index) & (Self.chunkSize - 1) < chunks[chunk].fresh else { return nil }
    return slots + Int(index)
  }

  /// From here on there is no slot.
  var end: UInt32 { UInt32(chunks.count << Self.chunkShift) }

  /// Like ``slot(_:)``, for an index that is known to be in use.
  subscript(_ index: UInt32) -> UnsafeMutablePointer<Slot> {
    precondition(Int(index) < capacity, "what is in use has a slot")
    return slots + Int(index)
  }

  /// Visits every slot in use.
  func forEach(_ body: (UInt32, UnsafeMutablePointer<Slot>) -> Void) {
    for (number, chunk) in chunks.enumerated() {
      let first = number << Self.chunkShift
      for index in first..<(first + chunk.fresh) where slots[index].isInUse {
        body(UInt32(index), slots + index)
      }
    }
  }

  /// Takes a free slot; nil when there is no memory, or there are as many as can be.
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
    let slot = self[index]
    slot.pointee.becomeFree()
    slot.pointee.next = chunks[chunk].firstFree
    if chunks[chunk].used == Self.capacity(of: chunk), !open.contains(chunk) { open.append(chunk) }
    chunks[chunk].firstFree = index
    chunks[chunk].used -= 1
    count -= 1
    if chunks[chunk].used == 0, chunk > 0 { removeChunk(chunk) }
  }

  /// Gives all memory back, whatever is in it.
  mutating func removeAll() {
    for chunk in chunks.indices where chunks[chunk].fresh > 0 { removeChunk(chunk) }
    (chunks, open, count) = ([], [], 0)
  }

  /// Takes over what another worker has left: which slots are in use, and which are free.
  ///
  /// What is not sound becomes free.
  mutating func restore() {
    let parts = region.roomy
    region.touchingAhead(parts) {
      for part in parts {
        let numbers = part.lowerBound / Self.chunkBytes...(part.upperBound - 1) / Self.chunkBytes
        for number in numbers { restore(number, room: part.upperBound - number * Self.chunkBytes) }
      }
    }
    // Not before: the other thread would have made room again.
    for number in chunks.indices.dropFirst() where chunks[number].used == 0 && chunks[number].room > 0 {
      removeChunk(number)
    }
    open = chunks.indices.filter { chunks[$0].fresh > 0 && chunks[$0].used < Self.capacity(of: $0) }
  }

  private mutating func restore(_ number: Int, room: Int) {
    var chunk = Chunk()
    chunk.room = min(room, Self.chunkBytes)
    let first = number << Self.chunkShift
    let last = first + chunk.room / MemoryLayout<Slot>.stride
    region.touch(number * Self.chunkBytes..<number * Self.chunkBytes + chunk.room)
    var firstFree: UInt32 = 0
    for index in stride(from: last - 1, through: max(first, 1), by: -1) {
      let slot = slots + index
      if Slot.isSound(slot), slot.pointee.isInUse {
        if chunk.fresh == 0 { chunk.fresh = index + 1 - first }
        chunk.used += 1
      } else if chunk.fresh > 0 {
        slot.initialize(to: Slot())
        slot.pointee.becomeFree()
        slot.pointee.next = firstFree
        firstFree = UInt32(index)
      }
    }
    chunk.firstFree = firstFree
    if number == 0 {
      chunk.fresh = max(chunk.fresh, 1)
      // Nobody has it, whatever damage says.
      slots.initialize(to: Slot())
      slots.pointee.becomeFree()
    }
    while chunks.count <= number { chunks.append(Chunk()) }
    chunks[number] = chunk
    count += chunk.used
  }

  private static func capacity(of chunk: Int) -> Int { chunk == 0 ? chunkSize - 1 : chunkSize }

  private mutating func take(in chunk: Int) -> UInt32? {
    let index: UInt32
    if chunks[chunk].firstFree != 0 {
      index = chunks[chunk].firstFree
      chunks[chunk].firstFree = slots[Int(index)].next
    } else if chunks[chunk].fresh < Self.chunkSize, makeRoom(in: chunk, for: chunks[chunk].fresh + 1) {
      index = UInt32(chunk << Self.chunkShift + chunks[chunk].fresh)
      chunks[chunk].fresh += 1
    } else {
      return nil
    }
    chunks[chunk].used += 1
    count += 1
    (slots + Int(index)).initialize(to: Slot())
    return index
  }

  private mutating func makeRoom(in chunk: Int, for slots: Int) -> Bool {
    let room = chunks[chunk].room
    if slots * MemoryLayout<Slot>.stride <= room { return true }
    let first = chunk * Self.chunkBytes
    let more = min(room + Self.step, Self.chunkBytes)
    do throws(Errno) {
      try region.makeRoom((first + room)..<(first + more))
    } catch {
      return false
    }
    chunks[chunk].room = more
    return true
  }

  private mutating func addChunk() -> Int? {
    let chunk = chunks.firstIndex { $0.fresh == 0 } ?? chunks.count
    guard (chunk + 1) << Self.chunkShift <= capacity else { return nil }
    var added = Chunk()
    added.fresh = chunk == 0 ? 1 : 0
    if chunk == chunks.count { chunks.append(added) } else { chunks[chunk] = added }
    return chunk
  }

  private mutating func removeChunk(_ chunk: Int) {
    let first = chunk * Self.chunkBytes
    region.giveBack(first..<(first + Self.chunkBytes))
    chunks[chunk] = Chunk()
    open.removeAll { $0 == chunk }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

/// A part of a name.
struct NameCell: SlabSlot {
  static var capacity: Int { 24 }
  private static let used: UInt32 = 0x656d_616e
  private static let free: UInt32 = 0

  private var state = used
  /// The cell with the rest of the name, 0 if this is the last.
  var next: UInt32 = 0
  /// Ends with a zero, unless it is full.
  var bytes = InlineArray<24, UInt8>(repeating: 0)

  var isInUse: Bool { state == Self.used }
  mutating func becomeFree() { state = Self.free }

  static func isSound(_ slot: UnsafeRawPointer) -> Bool { true }
}

/// The names by which nodes are found again where there are no handles, each in as many cells as it takes.
struct NodeNames {
  private var cells: Slab<NameCell>
  private static let longest = 255

  init(in region: SharedRegion) { cells = Slab(in: region) }

  /// Takes over what another worker has left.
  mutating func restore() { cells.restore() }

  mutating func removeAll() { cells.removeAll() }

  /// Keeps a name; 0 if there is no memory.
  mutating func add(_ name: Name) -> UInt32 {
    let bytes = name.buffer
    var next: UInt32 = 0
    // From the end, so that each cell knows the one after it.
    var start = max(0, (bytes.count - 1) / NameCell.capacity * NameCell.capacity)
    while start >= 0 {
      guard let index = cells.allocate() else {
        remove(next)
        return 0
      }
      let cell = cells[index]
      cell.pointee.next = next
      for (offset, byte) in bytes[start..<min(start + NameCell.capacity, bytes.count)].enumerated() {
        cell.pointee.bytes[offset] = byte
      }
      next = index
      start -= NameCell.capacity
    }
    return next
  }

  mutating func remove(_ first: UInt32) {
    var index = first
    // One that was damaged may lead in a circle.
    for _ in 0...Self.longest / NameCell.capacity {
      guard index != 0, let cell = cells.slot(index), cell.pointee.isInUse else { return }
      let next = cell.pointee.next
      cells.free(index)
      index = next
    }
  }

  /// Whether the name that begins in a cell is this one.
  func matches(_ first: UInt32, _ name: Name) -> Bool {
    first != 0 && withBytes(of: first) { $0.elementsEqual(name.buffer) }
  }

  /// A name as text that gives the same bytes again; nil if there is none.
  func text(_ first: UInt32) -> [UInt8]? {
    let bytes = withBytes(of: first) { Array($0) }
    return bytes.isEmpty || bytes.contains(0x2f) ? nil : bytes
  }

  private func withBytes<Result>(of first: UInt32, _ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.longest + NameCell.capacity) { buffer in
      var count = 0
      var index = first
      while index != 0, count < Self.longest, let cell = cells.slot(index), cell.pointee.isInUse {
        let part = cell.pointee.bytes
        var length = 0
        while length < NameCell.capacity, part[length] != 0 {
          buffer.initializeElement(at: count, to: part[length])
          length += 1
          count += 1
        }
        if length < NameCell.capacity { break }
        index = cell.pointee.next
      }
      return body(UnsafeBufferPointer(rebasing: buffer[..<count]))
    }
  }
}

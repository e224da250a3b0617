// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Synchronization

/// Records of one size in shared memory, each at the place that its number says, with a check of its own.
///
/// The records of a table that this process has in another form: written when something changes, and read
/// only by the next worker. Whoever writes has the table's lock.
struct KeptRecords<Record: BitwiseCopyable>: @unchecked Sendable {
  // Unchecked: see above.
  private struct Slot {
    /// 0 where there is no record.
    var check: UInt64
    var record: Record
  }
  private let region: SharedRegion?
  private let slots: UnsafeMutablePointer<Slot>?
  private let capacity: Int
  /// For so many bytes there is room.
  private var room = 0
  private static var step: Int { 1 << 14 }

  /// How many bytes a table of so many records takes.
  static func size(_ count: Int) -> Int {
    (count * MemoryLayout<Slot>.stride + step - 1) / step * step
  }

  /// Without a region nothing is kept.
  init(_ region: SharedRegion?) {
    self.region = region
    capacity = (region?.size ?? 0) / MemoryLayout<Slot>.stride
    let capacity = capacity
    slots = region.map { $0.base.bindMemory(to: Slot.self, capacity: max(1, capacity)) }
  }

  /// Notes a record; one for which there is no memory is not kept.
  mutating func set(_ index: Int, _ record: Record) {
    guard let slots, index >= 0, index < capacity, makeRoom(for: index) else { return }
    let slot = slots + index
    slot.pointee.check = 0
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    slot.pointee.record = record
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    slot.pointee.check = Self.check(slot)
  }

  func clear(_ index: Int) {
    guard let slots, index >= 0, (index + 1) * MemoryLayout<Slot>.stride <= room else { return }
    slots[index].check = 0
  }

  /// Hands over all sound records that another worker has left, and drops the others.
  mutating func restore(_ body: (Int, Record) -> Void) {
    guard let region, let slots else { return }
    room = region.roomy.last?.upperBound ?? 0
    for part in region.roomy {
      let first = part.lowerBound / MemoryLayout<Slot>.stride
      let last = min(part.upperBound / MemoryLayout<Slot>.stride, capacity)
      guard first < last else { continue }
      for index in first..<last where slots[index].check != 0 {
        if slots[index].check == Self.check(slots + index) {
          body(index, slots[index].record)
        } else {
          slots[index].check = 0
        }
      }
    }
  }

  private mutating func makeRoom(for index: Int) -> Bool {
    let needed = (index + 1) * MemoryLayout<Slot>.stride
    return needed <= room || grow(to: needed)
  }

  private mutating func grow(to needed: Int) -> Bool {
    guard let region else { return false }
    let more = min((needed + Self.step - 1) / Self.step * Self.step, region.size)
    guard needed <= more, (try? region.makeRoom(room..<more)) != nil else { return false }
    room = more
    return true
  }

  /// Never 0.
  private static func check(_ slot: UnsafeMutablePointer<Slot>) -> UInt64 {
    var sum: UInt64 = 0x9e37_79b9_7f4a_7c15
    withUnsafeBytes(of: &slot.pointee.record) { bytes in
      var offset = 0
      while offset + 8 <= bytes.count {
        sum = (sum ^ bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) &* 0xc2b2_ae3d_27d4_eb4f
        sum ^= sum >> 29
        offset += 8
      }
      while offset < bytes.count {
        sum = (sum ^ UInt64(bytes[offset])) &* 0x9e37_79b9_7f4a_7c15
        sum ^= sum >> 29
        offset += 1
      }
    }
    return sum | 1
  }
}

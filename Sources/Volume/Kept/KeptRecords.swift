// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Synchronization

/// Records of one size in shared memory, each at the place that its number says, with a check of its own.
///
/// The records of a table that this process has in another form: written when something changes, and read
/// only by the next worker. Whoever writes has the table's lock.
///
/// Room is made for a group of records at a time, and given back when the group is empty. Some empty groups
/// keep their room, so that a program that opens and closes all the time does not have pages come and go.
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
  private struct Group {
    /// Whether there is room for all of its records.
    var hasRoom = false
    /// How many records are there.
    var count = 0
  }
  private var groups: [Group] = []
  /// How many groups have room and no record.
  private var empty = 0
  /// With records whose size is a multiple of 16, a group has pages of its own.
  static var groupSize: Int { 256 }
  /// So many empty groups keep their room.
  static var emptyLimit: Int { 8 }
  private static var step: Int { 1 << 14 }
  private static var page: Int { 1 << 12 }

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
    if slot.pointee.check == 0 { count(index, by: 1) }
    slot.pointee.check = 0
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    slot.pointee.record = record
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    slot.pointee.check = Self.check(slot)
  }

  mutating func clear(_ index: Int) {
    let group = index / Self.groupSize
    guard let slots, index >= 0, index < capacity, groups.indices.contains(group), groups[group].hasRoom,
      slots[index].check != 0
    else { return }
    slots[index].check = 0
    count(index, by: -1)
    if groups[group].count == 0, empty > Self.emptyLimit { giveBack(group) }
  }

  /// Hands over all sound records that another worker has left, and drops the others.
  mutating func restore(_ body: (Int, Record) -> Void) {
    guard let region, let slots else { return }
    for part in region.roomy {
      noteRoom(part)
      let first = part.lowerBound / MemoryLayout<Slot>.stride
      let last = min(part.upperBound / MemoryLayout<Slot>.stride, capacity)
      guard first < last else { continue }
      for index in first..<last where slots[index].check != 0 {
        if slots[index].check == Self.check(slots + index) {
          noteRoom(for: index)
          count(index, by: 1)
          body(index, slots[index].record)
        } else {
          slots[index].check = 0
        }
      }
    }
  }

  // MARK: Groups

  private mutating func makeRoom(for index: Int) -> Bool {
    let group = index / Self.groupSize
    while groups.count <= group { groups.append(Group()) }
    if groups[group].hasRoom { return true }
    guard let region else { return false }
    let bytes = Self.bytes(of: group)
    let first = bytes.lowerBound / Self.page * Self.page
    let last = min((bytes.upperBound + Self.page - 1) / Self.page * Self.page, region.size)
    guard first < last, (try? region.makeRoom(first..<last)) != nil else { return false }
    groups[group].hasRoom = true
    empty += 1
    return true
  }

  /// Has room for the group of a record that is there: another worker may have made it for a part only.
  private mutating func noteRoom(for index: Int) {
    let group = index / Self.groupSize
    if makeRoom(for: index) || !groups.indices.contains(group) { return }
    // Without memory for the others, this one is there all the same.
    groups[group].hasRoom = true
    empty += 1
  }

  /// Notes that one record more is there, or one less.
  private mutating func count(_ index: Int, by change: Int) {
    let group = index / Self.groupSize
    guard groups.indices.contains(group) else { return }
    let wasEmpty = groups[group].count == 0
    groups[group].count += change
    let isEmpty = groups[group].count == 0
    if wasEmpty != isEmpty { empty += isEmpty ? 1 : -1 }
  }

  /// Gives the pages back that are the group's alone.
  private mutating func giveBack(_ group: Int) {
    let bytes = Self.bytes(of: group)
    let first = (bytes.lowerBound + Self.page - 1) / Self.page * Self.page
    // Behind the region is somebody else's.
    let last = min(bytes.upperBound, region?.size ?? 0) / Self.page * Self.page
    if first < last { region?.giveBack(first..<last) }
    groups[group].hasRoom = false
    empty -= 1
  }

  /// Notes the groups that lie in a part for which another worker has made room.
  private mutating func noteRoom(_ part: Range<Int>) {
    let bytes = Self.groupSize * MemoryLayout<Slot>.stride
    let last = min((part.upperBound - 1) / bytes, max(capacity - 1, 0) / Self.groupSize)
    while groups.count <= last { groups.append(Group()) }
    // One that has room in part only is given it when it is needed.
    for group in stride(from: (part.lowerBound + bytes - 1) / bytes, through: last, by: 1)
    where !groups[group].hasRoom && (group + 1) * bytes <= part.upperBound {
      groups[group].hasRoom = true
      empty += 1
    }
  }

  private static func bytes(of group: Int) -> Range<Int> {
    let size = groupSize * MemoryLayout<Slot>.stride
    return group * size..<(group + 1) * size
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

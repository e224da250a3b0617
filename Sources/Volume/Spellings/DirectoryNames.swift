// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc

/// The names in one directory, to be found in any spelling.
///
/// They are kept in one piece of memory, and a table says where: a number for each, of which half is the
/// hash of what all spellings of the name have in common (``NameKey``), and half is where the name begins.
///
/// Whoever has made it hands it over to the index, which uses it under its lock alone.
final class DirectoryNames: @unchecked Sendable {
  enum Found: Equatable {
    /// The name as it was asked for.
    case same
    case other([UInt8])
  }

  /// When names in the directory were last changed, in nanoseconds.
  var changed: Int64
  /// Whether that is when we have changed some ourselves: what the directory says is a moment before that.
  var isOwn = false
  /// Who has made this necessary.
  let user: UInt32
  /// What the index has counted for that user.
  var counted = 0
  var lastUse: UInt64 = 0
  private(set) var count = 0
  /// There are more names than may be kept, and none is.
  private(set) var areTooMany = false
  /// A power of two of them, of which never more than three quarters are taken.
  @exclusivity(unchecked) private var slots: UnsafeMutablePointer<UInt64>
  @exclusivity(unchecked) private var mask = 15
  private var taken = 0
  /// The names one after the other, each after its length.
  @exclusivity(unchecked) private var bytes: UnsafeMutablePointer<UInt8>
  private var room = 256
  private var end = 0
  private var bytesInUse = 0

  private static let free: UInt64 = 0
  private static let removed: UInt64 = 1

  init(changed: Int64, user: UInt32) {
    self.changed = changed
    self.user = user
    slots = Self.freeSlots(mask + 1)
    bytes = .allocate(capacity: room)
  }

  deinit {
    slots.deallocate()
    bytes.deallocate()
  }

  private static func freeSlots(_ count: Int) -> UnsafeMutablePointer<UInt64> {
    let slots = UnsafeMutablePointer<UInt64>.allocate(capacity: count)
    slots.initialize(repeating: free, count: count)
    return slots
  }

  /// What is known of a directory with too many names.
  static func tooMany(changed: Int64, user: UInt32) -> DirectoryNames {
    let names = DirectoryNames(changed: changed, user: user)
    names.areTooMany = true
    return names
  }

  /// Whether nobody else has changed names in the directory, if it says that they were changed at that time.
  func areUpToDate(_ time: Int64) -> Bool {
    isOwn ? time > changed - 1_000_000_000 && time < changed + 10_000_000 : time == changed
  }

  /// About how many bytes it takes.
  var weight: Int { 256 + 24 * count + bytesInUse }

  /// How much more that is than was counted, as soon as it is much.
  var uncounted: Int { abs(weight - counted) >= 1024 ? weight - counted : 0 }

  /// What there is of a name: the name itself, or else the first of its spellings.
  ///
  /// There are several only if they came past the daemon.
  func find(_ key: NameKey) -> Found? {
    if index(of: key, where: { $0.hasSameBytes(as: key.name) }) != nil { return .same }
    var first: [UInt8]?
    _ = index(of: key) { found in
      if key.isSpelled(found), first.map({ found.lexicographicallyPrecedes($0) }) ?? true {
        first = Array(found)
      }
      return false
    }
    return first.map { .other($0) }
  }

  /// What is no name in such a store is found by itself alone, and is not in here.
  func insert(_ name: UnsafeBufferPointer<UInt8>) {
    if !areTooMany, let key = NameKey(name) { insert(key) }
  }

  func insert(_ key: NameKey) {
    // A name of a directory has at most 255 bytes, on any filesystem.
    guard !areTooMany, let length = UInt8(exactly: key.name.count), let name = key.name.baseAddress,
      index(of: key, where: { $0.hasSameBytes(as: key.name) }) == nil, end < Int(UInt32.max) - 512
    else { return }
    if 4 * (taken + 1) > 3 * (mask + 1) || end + 256 > room { tidy() }
    place(Self.hash(key), at: end)
    bytes[end] = length
    (bytes + end + 1).update(from: name, count: key.name.count)
    end += key.name.count + 1
    bytesInUse += key.name.count + 1
    count += 1
  }

  func remove(_ key: NameKey) {
    guard let index = index(of: key, where: { $0.hasSameBytes(as: key.name) }) else { return }
    slots[index] = Self.removed
    bytesInUse -= key.name.count + 1
    count -= 1
  }

  // MARK: The table

  private static func hash(_ key: NameKey) -> UInt32 { UInt32(truncatingIfNeeded: key.hash) }

  /// Where a name with the hash of this one is in the table, the first for which that is so.
  @inline(__always)
  private func index(of key: NameKey, where isMeant: (UnsafeBufferPointer<UInt8>) -> Bool) -> Int? {
    let hash = Self.hash(key)
    var index = Int(hash) & mask
    while slots[index] != Self.free {
      if slots[index] != Self.removed, UInt32(truncatingIfNeeded: slots[index] >> 32) == hash {
        let start = Self.start(slots[index])
        if isMeant(UnsafeBufferPointer(start: bytes + start + 1, count: Int(bytes[start]))) { return index }
      }
      index = (index + 1) & mask
    }
    return nil
  }

  private static func start(_ slot: UInt64) -> Int { Int(UInt32(truncatingIfNeeded: slot)) - 2 }

  private func place(_ hash: UInt32, at start: Int) {
    var index = Int(hash) & mask
    while slots[index] > Self.removed { index = (index + 1) & mask }
    if slots[index] == Self.free { taken += 1 }
    slots[index] = UInt64(hash) << 32 | UInt64(start + 2)
  }

  /// Makes room for half as many names more than there are, and gives back that of those that are gone.
  private func tidy() {
    let (oldSlots, oldBytes, oldCount) = (slots, bytes, mask + 1)
    defer {
      oldSlots.deallocate()
      oldBytes.deallocate()
    }
    var size = 16
    while size < 2 * (count + 1) { size *= 2 }
    slots = Self.freeSlots(size)
    mask = size - 1
    room = bytesInUse + bytesInUse / 2 + 512
    bytes = .allocate(capacity: room)
    (taken, end) = (0, 0)
    for slot in UnsafeBufferPointer(start: oldSlots, count: oldCount) where slot > Self.removed {
      let start = Self.start(slot)
      let length = Int(oldBytes[start]) + 1
      place(UInt32(truncatingIfNeeded: slot >> 32), at: end)
      (bytes + end).update(from: oldBytes + start, count: length)
      end += length
    }
  }
}

extension UnsafeBufferPointer<UInt8> {
  fileprivate func hasSameBytes(as other: UnsafeBufferPointer<UInt8>) -> Bool {
    guard count == other.count, let base = baseAddress, let otherBase = other.baseAddress else {
      return count == other.count
    }
    return memcmp(base, otherBase, count) == 0
  }
}

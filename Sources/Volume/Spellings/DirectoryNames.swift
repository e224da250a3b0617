// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

/// The names in one directory, to be found in any spelling.
///
/// They are kept in one piece of memory, and a table says where: a number for each, of which half is the
/// hash of what all spellings of the name have in common, and half is where the name begins.
///
/// Whoever has made it hands it over to the index, which uses it under its lock alone.
final class DirectoryNames: @unchecked Sendable {
  /// When names in the directory were last changed, in nanoseconds.
  var changed: Int64
  /// Whether that is when we have changed some ourselves: what the directory says is a moment before that.
  var isOwn = false
  /// Who has made this necessary.
  let user: UInt32
  var lastUse: UInt64 = 0
  private(set) var count = 0
  /// There are more names than may be kept, and none is.
  private(set) var areTooMany = false
  /// A power of two of them, of which never more than three quarters are taken.
  private var slots: [UInt64]
  private var taken = 0
  private var bytes: [UInt8] = []
  private var bytesInUse = 0

  private static let free: UInt64 = 0
  private static let removed: UInt64 = 1

  init(changed: Int64, user: UInt32) {
    self.changed = changed
    self.user = user
    slots = Array(repeating: Self.free, count: 16)
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

  /// What there is of a name that has this folding: the name itself, or else the first of its spellings.
  ///
  /// There are several only if they came past the daemon.
  func spelling(of name: UnsafeBufferPointer<UInt8>, _ folded: [UInt8]) -> [UInt8]? {
    var first: [UInt8]?
    let same = index(of: Self.hash(folded)) { index in
      let found = self.name(in: slots[index])
      if found.elementsEqual(name) { return true }
      let other = Array(found)
      if foldedName(other) == folded, first.map({ other.lexicographicallyPrecedes($0) }) ?? true {
        first = other
      }
      return false
    }
    return same.map { Array(self.name(in: slots[$0])) } ?? first
  }

  /// What is no name in such a store is found by itself alone, and is not in here.
  func insert(_ name: UnsafeBufferPointer<UInt8>) {
    guard !areTooMany, let folded = foldedName(name) else { return }
    let hash = Self.hash(folded)
    guard index(of: hash, where: { self.name(in: slots[$0]).elementsEqual(name) }) == nil,
      bytes.count < Int(UInt32.max) - 512
    else { return }
    if 4 * (taken + 1) > 3 * slots.count { tidy() }
    place(hash, at: bytes.count)
    bytes.append(UInt8(truncatingIfNeeded: name.count))
    bytes.append(contentsOf: name)
    bytesInUse += name.count + 1
    count += 1
  }

  func remove(_ name: UnsafeBufferPointer<UInt8>) {
    guard let folded = foldedName(name),
      let index = index(of: Self.hash(folded), where: { self.name(in: slots[$0]).elementsEqual(name) })
    else { return }
    slots[index] = Self.removed
    bytesInUse -= name.count + 1
    count -= 1
  }

  // MARK: The table

  /// By a secret of this process, so nobody can choose names that meet.
  private static func hash(_ folded: [UInt8]) -> UInt32 {
    var hasher = Hasher()
    folded.withUnsafeBytes { hasher.combine(bytes: $0) }
    return UInt32(truncatingIfNeeded: hasher.finalize())
  }

  /// Where a name with a hash is in the table, the first for which that is so.
  private func index(of hash: UInt32, where isMeant: (Int) -> Bool) -> Int? {
    var index = Int(hash) & (slots.count - 1)
    while slots[index] != Self.free {
      if slots[index] != Self.removed, UInt32(truncatingIfNeeded: slots[index] >> 32) == hash,
        isMeant(index)
      {
        return index
      }
      index = (index + 1) & (slots.count - 1)
    }
    return nil
  }

  private func name(in slot: UInt64) -> ArraySlice<UInt8> {
    let start = Int(UInt32(truncatingIfNeeded: slot)) - 2
    return bytes[start + 1..<start + 1 + Int(bytes[start])]
  }

  private func place(_ hash: UInt32, at start: Int) {
    var index = Int(hash) & (slots.count - 1)
    while slots[index] > Self.removed { index = (index + 1) & (slots.count - 1) }
    if slots[index] == Self.free { taken += 1 }
    slots[index] = UInt64(hash) << 32 | UInt64(start + 2)
  }

  /// Makes room for as many names as there are, and gives back that of those that are gone.
  private func tidy() {
    let (old, names) = (slots, bytes)
    var size = 16
    while size < 2 * (count + 1) { size *= 2 }
    slots = Array(repeating: Self.free, count: size)
    taken = 0
    bytes = []
    bytes.reserveCapacity(bytesInUse + bytesInUse / 4)
    for slot in old where slot > Self.removed {
      let start = Int(UInt32(truncatingIfNeeded: slot)) - 2
      place(UInt32(truncatingIfNeeded: slot >> 32), at: bytes.count)
      bytes += names[start...start + Int(names[start])]
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Synchronization

/// The names that a directory had when its listing began, for as long as it is open.
///
/// A program that serves a volume may count names. To it an offset means another name when one before that
/// has come or gone, so a listing in several pages would leave names out, or show them twice. Here an offset
/// is a place in what was read at once.
///
/// Such a program may also list names without end. So a listing has a bound, whoever reads it, and what is
/// kept of it counts as its user's memory, as it is allocated.
final class KeptListing: Sendable {
  /// Entries as the kernel gives them, in blocks.
  struct Names: Sendable {
    fileprivate struct Block: Sendable {
      let bytes: [UInt8]
      /// The place of its first entry.
      let first: Int

      /// What it takes: arrays are allocated in steps, and the array of blocks as well.
      var weight: Int { bytes.capacity + 96 }
    }
    fileprivate(set) var count = 0
    fileprivate var blocks: [Block] = []
    /// What it takes altogether, and what of that the bytes of entries are.
    fileprivate(set) var weight = 0
    fileprivate(set) var bytes = 0

    /// Calls `body` with the entries from a place on, until it says that it is enough.
    func list(from place: Int64, _ body: (_ entry: DirectoryEntries.Entry, _ next: Int64) -> Bool) {
      let place = Int(clamping: max(place, 0))
      guard place < count else { return }
      for block in blocks[self.block(of: place)...] {
        let isOver = block.bytes.withUnsafeBytes { bytes in
          var entries = DirectoryEntries(bytes)
          var next = block.first
          while let entry = entries.next() {
            next += 1
            if next > place, !body(entry, Int64(next)) { return true }
          }
          return false
        }
        if isOver { return }
      }
    }

    /// The last block that begins at or before a place.
    private func block(of place: Int) -> Int {
      var (low, high) = (0, blocks.count)
      while high - low > 1 {
        let middle = (low + high) / 2
        if blocks[middle].first <= place { low = middle } else { high = middle }
      }
      return low
    }

    fileprivate mutating func add(_ block: Block, names: Int) {
      blocks.append(block)
      count += names
      weight += block.weight
      bytes += block.bytes.count
    }
  }

  /// A directory that people use has less.
  struct Bound: Sendable {
    var names = 1 << 22
    var bytes = 1 << 28
  }

  private struct State {
    var names: Names?
    /// The user has no memory left for it: it is read page by page, at the offsets of whoever serves it.
    var isTooLarge = false
    /// How many names were listed so.
    var listed = 0
  }
  private let state = OrderedMutex(.leaf, State())
  private let bound: Bound
  private static let chunk = 1 << 15
  /// An entry is no longer: no server names anything by more than a path's length (linux/limits.h).
  private static let longestEntry = 4096 + 64

  init(bound: Bound = Bound()) { self.bound = bound }

  /// The names for a page; those of now for the first one.
  ///
  /// Nil if the user has no memory left for them. EOVERFLOW if there are too many. `once`: each name is
  /// listed once at most, though the filesystem below gives it twice. XFS does when names change meanwhile,
  /// and restic gives up where it sees that.
  func names(
    of directory: FD, from place: Int64, once: Bool = false, _ budget: Budget, by payer: Payer
  ) throws(Errno) -> Names? {
    if place != 0 {
      let (known, isTooLarge, listed) = state.withLock { ($0.names, $0.isTooLarge, $0.listed) }
      if isTooLarge, listed > bound.names { throw .EOVERFLOW }
      if known != nil || isTooLarge { return known }
    }
    let found = try read(directory, once, budget, payer)
    replace(by: found, budget, payer)
    state.withLock { ($0.isTooLarge, $0.listed) = (found == nil, 0) }
    return found
  }

  /// So many names have been listed that are not kept.
  func listed(_ count: Int) { state.withLock { $0.listed += count } }

  /// Nobody reads it any more.
  func giveBack(to budget: Budget, by payer: Payer) { replace(by: nil, budget, payer) }

  private func replace(by found: Names?, _ budget: Budget, _ payer: Payer) {
    let before = state.withLock { state in
      defer { state.names = found }
      return state.names
    }
    if let before { budget.give(.memory, before.weight, by: payer) }
  }

  private func read(
    _ directory: FD, _ once: Bool, _ budget: Budget, _ payer: Payer
  ) throws(Errno) -> Names? {
    _ = try directory.seek(0, SEEK_SET)
    var names = Names()
    // By a hash that nobody can know before.
    var seen: Set<Int> = []
    let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.chunk, alignment: 16)
    defer { chunk.deallocate() }
    do throws(Errno) {
      while true {
        var (length, isLast) = try fill(chunk, from: directory)
        guard length > 0 else { return names }
        if once { length = Self.removeKnown(from: chunk, length, &seen) }
        let bytes = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(chunk)[..<length])
        let block = Names.Block(bytes: Array(bytes), first: names.count)
        guard budget.takeQuietly(.memory, block.weight, by: payer) else {
          budget.give(.memory, names.weight, by: payer)
          return nil
        }
        names.add(block, names: Self.count(of: bytes))
        guard names.count <= bound.names, names.bytes <= bound.bytes else { throw .EOVERFLOW }
        if isLast { return names }
      }
    } catch {
      budget.give(.memory, names.weight, by: payer)
      throw error
    }
  }

  /// Reads until there is no room for one more entry, or no more: whoever serves it may give them one by one.
  private func fill(_ chunk: UnsafeMutableRawBufferPointer, from directory: FD) throws(Errno) -> (
    length: Int, isLast: Bool
  ) {
    var length = 0
    while length + Self.longestEntry <= chunk.count {
      let room = UnsafeMutableRawBufferPointer(rebasing: chunk[length...])
      let count = try directory.readDirectory(into: room)
      guard count > 0 else { return (length, true) }
      length += count
    }
    return (length, false)
  }

  /// Leaves those names in a chunk that were not there before; how long it is then.
  static func removeKnown(
    from chunk: UnsafeMutableRawBufferPointer, _ length: Int, _ seen: inout Set<Int>
  ) -> Int {
    var entries = DirectoryEntries(UnsafeRawBufferPointer(rebasing: chunk[..<length]))
    var (begin, kept) = (0, 0)
    while let entry = entries.next() {
      let end = entries.position
      defer { begin = end }
      var hasher = Hasher()
      hasher.combine(bytes: UnsafeRawBufferPointer(entry.name.buffer))
      guard seen.insert(hasher.finalize()).inserted else { continue }
      if kept != begin, let base = chunk.baseAddress { memmove(base + kept, base + begin, end - begin) }
      kept += end - begin
    }
    return kept
  }

  private static func count(of bytes: UnsafeRawBufferPointer) -> Int {
    var entries = DirectoryEntries(bytes)
    var count = 0
    while entries.next() != nil { count += 1 }
    return count
  }
}

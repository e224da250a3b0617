// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import TestSupport
internal import Testing
@testable internal import Volume

/// How large the tables in shared memory become, and that they give their memory back.
struct KeptTableTests {
  /// Bytes that a file in memory takes.
  private func taken(_ memory: SharedMemory) throws -> Int { Int(try memory.fd.status().st_blocks) * 512 }

  private static func words(_ size: Int) -> String {
    for (shift, unit) in [(30, "GiB"), (20, "MiB")] where size % (1 << shift) == 0 {
      return "\(size >> shift) \(unit)"
    }
    return "\(size >> 10) KiB"
  }

  /// ARCHITECTURE names each table with its largest size.
  @Test func sizesAreWritten() throws {
    let root = #filePath.split(separator: "/").dropLast(3).map { "/" + $0 }.joined()
    let path = root + "/Documentation/ARCHITECTURE.md"
    let text = try #require(FD.text(of: path, limit: 1 << 20))
    let (handles, nodes) = (1 << 20, 1 << 26)
    for (name, size) in [
      ("Intents", Intents.size), ("KeptLocks", KeptLocks.size),
      ("KeptSession", KeptRecords<KeptSession>.size(1)),
      ("HandleTable<OpenFile>", KeptRecords<HandleTable<OpenFile>.Kept>.size(handles)),
      ("HandleTable<OpenDirectory>", KeptRecords<HandleTable<OpenDirectory>.Kept>.size(handles)),
      ("NodeNames", Slab<NameCell>.size(nodes)), ("NodeTable", Slab<Node>.size(nodes)),
    ] {
      let row = text.split(separator: "\n").first { $0.hasPrefix("| `\(name)` |") }
      #expect(row?.hasSuffix("| \(Self.words(size)) |") == true, "\(name): \(Self.words(size)), \(row ?? "")")
    }
  }

  private static let lock = KeptLocks.Record(
    sequence: 1, inode: 5, device: 6, view: 1, owner: 7, handle: 8, first: 0, last: 9, pid: 1, payer: 2,
    payerView: 0, isFlock: 0, isWrite: 1)
  private static let file = OpenFile.Record(
    node: 1, request: 2, uid: 3, gid: 4, pid: 5, payer: 6, payerView: 7, descriptor: -1, appending: -1,
    backing: 0, access: 1, isRevocable: 0, isRoots: 0, maps: 0)
  private static let directory = OpenDirectory.Record(
    node: 1, request: 2, payer: 3, payerView: 4, descriptor: -1)

  /// A table that was full gives its memory back, all but a little, also if another worker has filled it.
  @Test(arguments: [false, true]) func fullTablesGiveMemoryBack(isTakenOver: Bool) throws {
    try fill(KeptLocks.capacity, Self.lock, isTakenOver)
    try fill(1 << 20, HandleTable<OpenFile>.Kept(generation: 1, record: Self.file), isTakenOver)
    try fill(1 << 20, HandleTable<OpenDirectory>.Kept(generation: 1, record: Self.directory), isTakenOver)
  }

  private func fill<Record: BitwiseCopyable>(
    _ count: Int, _ record: Record, _ isTakenOver: Bool
  ) throws {
    let size = KeptRecords<Record>.size(count)
    // What lies behind it is another table's.
    let memory = try SharedMemory("test", size: size + (1 << 16))
    try memory.whole.makeRoom(size..<size + (1 << 16))
    memory.base.storeBytes(of: 0x1234_5678, toByteOffset: size, as: UInt64.self)
    let region = SharedRegion(memory, 0..<size)
    var records = KeptRecords<Record>(region)
    for index in 0..<count { records.set(index, record) }
    // All of it is used.
    #expect(try taken(memory) > size)
    if isTakenOver {
      records = KeptRecords<Record>(region)
      var found = 0
      records.restore { _, _ in found += 1 }
      #expect(found == count)
    }
    for index in (0..<count).reversed() { records.clear(index) }
    let left = try taken(memory) - (1 << 16)
    let group = size / count * KeptRecords<Record>.groupSize
    // Where a group ends within a page, its neighbour has that too.
    let limit = (KeptRecords<Record>.emptyLimit + 2) * (group + 8192) + (group % 4096 == 0 ? 0 : size / 8)
    #expect(left <= limit, "\(left) of \(size)")
    #expect(memory.base.load(fromByteOffset: size, as: UInt64.self) == 0x1234_5678)
    // What was given back comes again when it is needed.
    for index in 0..<count { records.set(index, record) }
    var next = KeptRecords<Record>(region)
    var found = 0
    next.restore { _, _ in found += 1 }
    #expect(found == count)
  }

  /// Nodes and names are freed in any order, and their memory goes back.
  @Test func nodesAndNamesGiveMemoryBack() throws {
    try allocate(Slab<Node>.self, 1 << 18)
    try allocate(Slab<NameCell>.self, 1 << 18)
  }

  private func allocate<Slot: SlabSlot>(_: Slab<Slot>.Type, _ count: Int) throws {
    let memory = try SharedMemory("test", size: Slab<Slot>.size(count))
    var slab = Slab<Slot>(in: memory.whole)
    var used: [UInt32] = []
    while let index = slab.allocate() { used.append(index) }
    // All but the first one.
    #expect(used.count == count - 1)
    #expect(try taken(memory) == memory.size)
    var random = SeededRandom(seed: 3)
    for index in used.shuffled(using: &random) { slab.free(index) }
    // The first 4096 stay.
    #expect(try taken(memory) <= memory.size / (count / 4096))
  }

  /// Whatever comes and goes, the next worker finds what is there.
  @Test(arguments: 1...4) func recordsAreAsAModelSays(seed: Int) throws {
    let memory = try SharedMemory("test", size: KeptRecords<UInt64>.size(20_000))
    var records = KeptRecords<UInt64>(memory.whole)
    var model: [Int: UInt64] = [:]
    var random = SeededRandom(seed: UInt64(seed))
    for step in 0..<60_000 {
      // Now and then nearly all goes.
      let adds = step / 10_000 % 2 == 0 ? 3 : 1
      let index = Int.random(in: 0..<20_000, using: &random)
      if Int.random(in: 0..<4, using: &random) < adds {
        model[index] = UInt64(step)
        records.set(index, UInt64(step))
      } else {
        for index in index..<min(index + 200, 20_000) {
          model[index] = nil
          records.clear(index)
        }
      }
      guard step % 9999 == 9998 else { continue }
      var next = KeptRecords<UInt64>(memory.whole)
      var found: [Int: UInt64] = [:]
      next.restore { found[$0] = $1 }
      #expect(found == model)
      records = next
    }
  }
}

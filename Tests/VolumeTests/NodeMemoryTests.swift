// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing
@testable internal import Volume

/// What the nodes cost.
@Suite(.serialized) struct NodeMemoryTests {
  /// The memory of this process that is really there.
  private static func residentBytes() throws -> Int {
    let text = try #require(FD.text(of: "/proc/self/statm", limit: 4096))
    let pages = text.split(separator: " ").compactMap { Int($0) }
    return try #require(pages.count > 1 ? pages[1] : nil) * Int(getpagesize())
  }

  /// Without handles each node has a name too.
  ///
  /// Other tests take memory and give it back in this process too, so it may need several looks to see what
  /// is ours.
  @Test(arguments: [false, true])
  func aMillionNodesCostAtMost150BytesEach(names: Bool) throws {
    var seen: [(each: Double, left: Double)] = []
    for _ in 0..<5 {
      let look = try lookAtAMillion(names: names)
      seen.append(look)
      print("\(look.each) bytes for each node \(names ? "with its name" : "found by its handle")")
      // Far less would mean that nothing was measured; a little less is what the tests beside this one have
      // given back meanwhile. The C library may keep some of what names were in afterwards; the slots are
      // mappings of their own.
      let least = 0.9 * Double(MemoryLayout<Node>.size)
      if look.each <= 150, look.each >= least, look.left < 0.5 * look.each { return }
    }
    Issue.record("bytes for each node, and what is left of them: \(seen)")
  }

  private func lookAtAMillion(names: Bool) throws -> (each: Double, left: Double) {
    var state = NodeTableState(in: try ViewMemory())
    func add(_ range: Range<UInt64>) throws {
      for number in range {
        // Not by the macro: a million of those would take longer than all the rest.
        guard let index = state.make(.numbered(number, device: 64768), directory: number % 20 == 0) else {
          throw Errno.ENOMEM
        }
        if names { try "file-\(number)".withName { state.remember($0, of: index) } }
      }
    }
    try add(0..<10_000)
    let before = try Self.residentBytes()
    try add(10_000..<1_010_000)
    let each = Double(try Self.residentBytes() - before) / 1_000_000
    #expect(state.slab.count == 1_010_000)

    // Every one of them is found, and all of the memory is released.
    for number in UInt64(0)..<1_010_000 {
      guard let index = state.find(.numbered(number, device: 64768)), state.remove(index) == -1 else {
        throw Errno.ESTALE
      }
    }
    #expect(state.slab.count == 0)
    #expect(state.find(ObjectNumber(inode: 5, device: 64768)) == nil)
    return (each, Double(try Self.residentBytes() - before) / 1_000_000)
  }

  @Test func emptyChunksAreGivenBack() throws {
    let memory = try ViewMemory()
    var slab = Slab<Node>(in: memory.nodes)
    var slots: [UInt32] = []
    for _ in 0..<20_000 { slots.append(slab.allocate() ?? 0) }
    #expect(Set(slots).count == 20_000 && !slots.contains(0) && slots.first == 1)
    for index in slots { slab[index].pointee.flags = .inUse }
    for index in slots where index >= 8192 { slab.free(index) }
    #expect(slab.slot(8191) != nil && slab.slot(8192) == nil && slab.slot(16_384) == nil)
    #expect(slab.slot(.max) == nil)
    var seen = 0
    slab.forEach { index, _ in
      seen += 1
      #expect(index < 8192)
    }
    #expect(seen == slab.count && seen == 8191)
    // And used again.
    let again = (0..<5000).map { _ in slab.allocate() ?? 0 }
    #expect(Set(again).count == 5000 && again.allSatisfy { $0 >= 8192 })
  }

  @Test func slotsAgreeWithASet() throws {
    var random = SeededRandom(seed: 11)
    let memory = try ViewMemory()
    var slab = Slab<Node>(in: memory.nodes)
    var used: Set<UInt32> = []
    for round in 0..<60_000 {
      // It swells and shrinks.
      let grow = Int.random(in: 0..<100, using: &random) < (round / 10_000 % 2 == 0 ? 80 : 25)
      if grow {
        let index = slab.allocate() ?? 0
        #expect(used.insert(index).inserted && index != 0)
        slab[index].pointee.inode = UInt64(index)
        slab[index].pointee.flags = .inUse
      } else if let index = used.randomElement(using: &random) {
        #expect(slab[index].pointee.inode == UInt64(index))
        slab.free(index)
        used.remove(index)
      }
      if slab.count != used.count { break }
    }
    #expect(slab.count == used.count)
    var found: Set<UInt32> = []
    slab.forEach { index, _ in found.insert(index) }
    #expect(found == used)
  }
}

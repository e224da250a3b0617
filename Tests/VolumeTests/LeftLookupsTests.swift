// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Policy
internal import Testing
@testable internal import Volume

/// Lookups that a worker has counted, and that nobody gives back after its death.
struct LeftLookupsTests {
  private func table(_ memory: ViewMemory, takingOver: Bool) throws -> NodeTableState {
    var state = NodeTableState(in: memory)
    try state.beginAtRoot(
      .numbered(1, device: 1), -1, .top, .whole, takingOver: takingOver, capacity: 10)
    return state
  }

  private func all(_ state: inout NodeTableState) -> [NodeID: UInt64] {
    var found: [NodeID: UInt64] = [:]
    while let some = state.left.take(1000, in: state.slab) {
      for node in some { found[node.id] = node.lookups }
    }
    return found
  }

  /// Each node that was left is asked about once, none of those that came later, and one that the kernel has
  /// forgotten again.
  @Test func allThatWereLeftAreAskedAbout() throws {
    let memory = try ViewMemory()
    var state = try table(memory, takingOver: false)
    #expect(all(&state).isEmpty)
    var left: [NodeID: UInt64] = [:]
    for number in UInt64(100)..<10_000 {
      guard let index = state.make(.numbered(number, device: 1), directory: false) else { throw Errno.ENOMEM }
      state.slab[index].pointee.lookups = number
      left[NodeTable.id(index, state.slab[index].pointee.generation)] = number
    }
    var next = try table(memory, takingOver: true)
    for number in UInt64(20_000)..<20_100 {
      guard let index = next.make(.numbered(number, device: 1), directory: false) else { throw Errno.ENOMEM }
      next.slab[index].pointee.lookups = 1
    }
    #expect(all(&next) == left)
    #expect(all(&next).isEmpty)
    let (id, lookups) = try #require(left.first)
    next.left.note(id)
    #expect(all(&next) == [id: lookups])
  }

  @Test func tooManyToNoteAreAllAskedAboutAgain() throws {
    let memory = try ViewMemory()
    var state = try table(memory, takingOver: false)
    guard let index = state.make(.numbered(100, device: 1), directory: false) else { throw Errno.ENOMEM }
    state.slab[index].pointee.lookups = 1
    var next = try table(memory, takingOver: true)
    #expect(all(&next).count == 1)
    for _ in 0...1 << 16 { next.left.note(NodeTable.id(index, 77)) }
    #expect(all(&next).count == 1)
  }
}

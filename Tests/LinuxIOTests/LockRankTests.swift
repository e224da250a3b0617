// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Synchronization
internal import Testing

/// Debug builds hold every thread to the order of locks.
struct LockRankTests {
  @Test func locksAreTakenInTheirOrder() {
    let outer = OrderedMutex(.grantMoves, 1)
    let inner = OrderedMutex(.nodes, 2)
    let sum = outer.withLock { first in inner.withLock { second in first + second } }
    #expect(sum == 3)
    // What was released may be taken again.
    #expect(inner.withLock { $0 } + outer.withLock { $0 } == 3)
  }

  @Test func locksMayBeGivenBackInAnyOrder() {
    LockRank.names.enter()
    LockRank.nodes.enter()
    LockRank.names.leave()
    LockRank.leaf.enter()
    LockRank.leaf.leave()
    LockRank.nodes.leave()
    LockRank.names.enter()
    LockRank.names.leave()
  }

  @Test func theWrongOrderStopsTheProcess() async {
    await #expect(processExitsWith: .failure) {
      let outer = OrderedMutex(.grantMoves, ())
      let inner = OrderedMutex(.nodes, ())
      inner.withLock { _ in outer.withLock { _ in } }
    }
  }

  @Test func twoOfOneRankStopTheProcess() async {
    await #expect(processExitsWith: .failure) {
      let one = OrderedMutex(.scope, ())
      let other = OrderedMutex(.scope, ())
      one.withLock { _ in other.withLock { _ in } }
    }
  }
}

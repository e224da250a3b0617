// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Synchronization
internal import TestSupport
internal import Testing
@testable internal import LinuxIO

/// Whoever makes a look wait costs a moment of it, and nobody else's turn.
@Suite struct ProcessLookTests {
  /// What makes whoever looks at some processes wait, and how often each was looked at.
  private final class Processes: Sendable {
    let isOpen = Condition(false)
    let looks = Mutex<[Int32: Int]>([:])
    private let waiting: Set<Int32>

    init(waiting: Set<Int32>) { self.waiting = waiting }

    func look(at process: Int32) -> Int32 {
      looks.withLock { $0[process, default: 0] += 1 }
      if waiting.contains(process) { isOpen.wait { $0 } }
      return 2 * process
    }
    func count(_ process: Int32) -> Int { looks.withLock { $0[process] ?? 0 } }
  }

  /// The processes of a user have numbers with the same last digit; root's is 0.
  private func look(_ stuck: StuckLooks, _ change: (inout ProcessLook.Limits) -> Void = { _ in })
    -> ProcessLook
  {
    var limits = ProcessLook.Limits(all: Int(patience), one: 300, user: Int(patience))
    change(&limits)
    return ProcessLook(limits, stuck: stuck) { $0 == 99 ? nil : UInt32($0 % 10) }
  }

  @Test func allAnswerWhereNobodyWaits() {
    let (stuck, processes) = (StuckLooks(), Processes(waiting: []))
    let found = look(stuck).answers(about: [1, 10, 12, 99, 21], processes.look)
    #expect(found == [1: 2, 10: 20, 12: 24, 21: 42] && stuck.count == 0)
    #expect(processes.count(99) == 0, "one that has ended")
    #expect(look(stuck).answers(about: [], processes.look) == [:])
  }

  @Test func whoMakesALookWaitIsLeftAlone() {
    let stuck = StuckLooks()
    // Two of one user's, one of another's, and two of root's.
    let processes = Processes(waiting: [11, 21, 12, 10, 30])
    let all: [Int32] = [10, 20, 30, 40, 11, 21, 31, 12, 22, 13, 23]
    defer { processes.isOpen.change { $0 = true } }
    for round in 1...3 {
      let found = look(stuck).answers(about: all, processes.look)
      #expect(found == [20: 40, 40: 80, 13: 26, 23: 46], "round \(round)")
      // However often somebody looks, one thread waits for each user; root's others are looked at.
      #expect(stuck.count == 4)
      for process in [10, 30, 11, 12] as [Int32] { #expect(processes.count(process) == 1) }
      for process in [21, 31, 22] as [Int32] { #expect(processes.count(process) == 0) }
    }
    processes.isOpen.change { $0 = true }
    #expect(eventually { stuck.count == 0 })
    let found = look(stuck).answers(about: all, processes.look)
    #expect(found.count == all.count)
  }

  @Test func whoHasManySlowOnesUsesUpTheirOwnTime() {
    let (stuck, processes) = (StuckLooks(), Processes(waiting: []))
    let slow = (0..<200).map { Int32(10 * $0 + 1) }
    let found = look(stuck) {
      $0.one = Int(patience); $0.user = 20
    }.answers(about: slow + [2, 10]) { process in
      // As long as it takes to read what a process has mapped a great many times.
      if process % 10 == 1 { _ = Condition(false).wait(milliseconds: 5) { $0 } }
      return processes.look(at: process)
    }
    #expect(found[2] == 4 && found[10] == 20)
    #expect(found.count < 30 && stuck.count == 0, "\(found.count)")
  }

  @Test func theWholeLookHasAnEnd() {
    let stuck = StuckLooks()
    // Each of another user's.
    let processes = Processes(waiting: Set(1...9))
    defer { processes.isOpen.change { $0 = true } }
    let all = (1...9).map { Int32($0) } + [10]
    let found = look(stuck) {
      $0.all = 300; $0.one = 100
    }.answers(about: all, processes.look)
    #expect(found[10] == nil && processes.count(10) == 0)
    #expect((1...5).contains(stuck.count), "\(stuck.count)")
  }

  @Test func threadsThatWaitAreCountedForTheProgram() {
    let stuck = StuckLooks()
    for number in 0..<StuckLooks.maxThreads { stuck.add(Int32(1000 + number), of: UInt32(1000 + number)) }
    #expect(stuck.covers(1, of: 7) && !stuck.covers(1, of: 0) && stuck.covers(1000, of: 0))
    stuck.remove(1000)
    #expect(!stuck.covers(1, of: 7) && stuck.covers(1, of: 1001))
  }
}

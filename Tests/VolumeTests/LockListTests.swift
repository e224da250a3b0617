// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing
@testable internal import Volume

/// Byte ranges beside an array that has an entry for every byte.
struct LockListTests {
  private static let bytes = 24
  private static let holders = (0..<4).map { LockHolder(view: $0 / 2, owner: LockOwner(UInt64($0 % 2))) }

  /// The kind of lock that each holder has on each byte; the last byte stands for all that follow.
  private struct Reference {
    var kinds = [[LockRange.Kind]](repeating: .init(repeating: .none, count: bytes), count: 4)

    func conflicts(_ wanted: LockRange, _ holder: Int) -> Bool {
      guard wanted.kind != .none else { return false }
      return kinds.indices.contains { other in
        other != holder
          && LockListTests.indices(wanted).contains { byte in
            kinds[other][byte] == .write || kinds[other][byte] == .read && wanted.kind == .write
          }
      }
    }
  }

  private static func indices(_ range: LockRange) -> ClosedRange<Int> {
    Int(min(range.first, Int64(bytes - 1)))...Int(min(range.last, Int64(bytes - 1)))
  }

  private static func range(_ random: inout SeededRandom) -> LockRange {
    let ends = (0..<2).map { _ in Int64.random(in: 0..<Int64(bytes), using: &random) }
    let last = max(ends[0], ends[1])
    let kind: LockRange.Kind = [.read, .write, .none].randomElement(using: &random) ?? .none
    // The last byte of the array reaches to the end of all files.
    return LockRange(
      kind: kind, first: min(ends[0], ends[1]), last: last == Int64(bytes - 1) ? .max : last, pid: 1)
  }

  @Test(arguments: [1, 2, 3, 4, 5] as [UInt64])
  func agreesWithAnArrayOfBytes(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var list = LockList()
    var reference = Reference()
    var refused = 0
    for step in 0..<4000 {
      let number = Int.random(in: 0..<4, using: &random)
      let holder = Self.holders[number]
      let wanted = Self.range(&random)
      let conflict = list.conflict(with: wanted, by: holder)
      #expect((conflict != nil) == reference.conflicts(wanted, number))
      if let conflict {
        refused += 1
        #expect(conflict.holder != holder && conflict.range.overlaps(wanted))
      } else {
        let lock = HeldLock(holder: holder, handle: HandleID(UInt64(step % 7)), range: wanted)
        list.make(list.change(to: lock))
        for byte in Self.indices(wanted) { reference.kinds[number][byte] = wanted.kind }
      }
      if Int.random(in: 0..<40, using: &random) == 0 {
        list.make(LockList.Change(removed: list.all(of: holder)))
        reference.kinds[number] = .init(repeating: .none, count: Self.bytes)
      }
      Self.compare(list, reference)
      // What is known by open file is what is there.
      for view in UInt32(0)..<2 {
        for handle in (UInt64(0)..<7).map({ HandleID($0) }) {
          let expected = list.held.filter { $0.handle == handle && $0.holder.view == view }.count
          #expect(list.all(through: handle, of: view).count == expected)
        }
        #expect(list.all(of: view).count == list.held.filter { $0.holder.view == view }.count)
      }
    }
    #expect(refused > 500)
  }

  private static func compare(_ list: LockList, _ reference: Reference) {
    for (number, holder) in holders.enumerated() {
      let mine = list.held.filter { $0.holder == holder }.map(\.range).sorted { $0.first < $1.first }
      var kinds = [LockRange.Kind](repeating: .none, count: bytes)
      for range in mine {
        #expect(range.kind != .none && range.first <= range.last)
        for byte in indices(range) {
          #expect(kinds[byte] == .none, "two locks of one holder on one byte")
          kinds[byte] = range.kind
        }
      }
      #expect(kinds == reference.kinds[number])
      for (before, after) in zip(mine, mine.dropFirst()) where before.kind == after.kind {
        #expect(!before.touches(after), "neighbours of one kind are one lock")
      }
    }
    #expect(list.isEmpty == reference.kinds.allSatisfy { $0.allSatisfy { $0 == .none } })
  }

  /// The tree's answer beside a look at every lock.
  @Test(arguments: [1, 2, 3] as [UInt64])
  func conflictIsTheFirstOfAll(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var list = LockList()
    for step in 0..<1500 {
      let holder = LockHolder(view: 1, owner: LockOwner(UInt64.random(in: 0..<6, using: &random)))
      let first = Int64.random(in: 0..<1500, using: &random)
      let kind: LockRange.Kind = [.read, .read, .write, .none].randomElement(using: &random) ?? .none
      let wanted = LockRange(
        kind: kind, first: first, last: first + Int64.random(in: 0..<30, using: &random), pid: 1)
      let found = list.conflict(with: wanted, by: holder)
      let expected = list.held.first { lock in
        lock.holder != holder && lock.range.overlaps(wanted) && wanted.kind != .none
          && (lock.range.kind == .write || wanted.kind == .write)
      }
      #expect(found?.range == expected?.range && found?.holder == expected?.holder)
      guard found == nil else { continue }
      list.make(
        list.change(to: HeldLock(holder: holder, handle: HandleID(UInt64(step)), range: wanted)))
    }
    #expect(list.held.count > 100)
  }

  /// What this thread has had of a CPU, whatever others do.
  private static func threadNanoseconds() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }

  /// Thirty times as many locks take little more time each.
  @Test func manyLocksAreFoundFast() {
    func nanoseconds(_ count: Int64) -> UInt64 {
      var list = LockList()
      let start = Self.threadNanoseconds()
      // From both ends and in between, by four who take turns; every other byte, so that nothing is joined.
      for number in 0..<count {
        let holder = LockHolder(view: 1, owner: LockOwner(UInt64(number % 4)))
        let at = 2 * ((number &* 7919) % count)
        let range = LockRange(kind: .write, first: at, last: at, pid: 1)
        guard list.conflict(with: range, by: holder) == nil else { continue }
        list.make(list.change(to: HeldLock(holder: holder, handle: HandleID(1), range: range)))
      }
      let each = (Self.threadNanoseconds() - start) / UInt64(count)
      #expect(list.held.count == count)
      return each
    }
    let few = (0..<3).map { _ in nanoseconds(1000) }.min() ?? 0
    let many = (0..<2).map { _ in nanoseconds(32_003) }.min() ?? 0
    #expect(many < 10 * few, "\(many) ns against \(few) ns")
  }

  @Test func endsOfTheNumbersAreSafe() {
    let whole = LockRange(kind: .write, first: 0, last: .max, pid: 0)
    let last = LockRange(kind: .write, first: .max, last: .max, pid: 0)
    let first = LockRange(kind: .write, first: 0, last: 0, pid: 0)
    #expect(whole.overlaps(last) && whole.touches(last) && !first.touches(last))
    #expect(whole.subtracting(last).map(\.last) == [.max - 1] && whole.subtracting(first).map(\.first) == [1])
    #expect(last.subtracting(whole).isEmpty && last.subtracting(first) == [last])
    #expect(LockRange(kind: .read, first: .max - 1, last: .max - 1, pid: 0).touches(last))
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import LinuxIO
internal import TestSupport
internal import Testing

/// Who is noted to have held locks of backing files, and for how long.
struct LockHoldersTests {
  private let temporary: TemporaryDirectory
  private let memory: SharedMemory
  private let holders: LockHolders

  init() throws {
    temporary = try TemporaryDirectory()
    let ranges = try temporary.write("1001:100000:65536\n", to: "subuid")
    let accounts = try temporary.write("ann:x:1001:1001::/:/bin/sh\n", to: "passwd")
    memory = try SharedMemory("test", size: LockHolders.size)
    holders = LockHolders(
      at: memory.base, of: memory, SubordinateUsers(path: ranges, accounts: LocalAccounts(path: accounts)))
  }

  @Test func nobodyIsOneAtFirst() {
    #expect(!holders.contains(1001) && !holders.contains(0))
  }

  @Test func anAccountIsOneWithAllItsIDs() {
    #expect(holders.add(100_005) == 1)
    for user: UInt32 in [1001, 100_000, 165_535] { #expect(holders.contains(user)) }
    for user: UInt32 in [0, 1002, 165_536] { #expect(!holders.contains(user)) }
    #expect(holders.add(1001) == 2)
    for _ in 0..<3 { #expect(holders.add(1001) == 3) }
    #expect(holders.contains(1001))
  }

  @Test func itIsOverAfterAnHour() {
    #expect(holders.add(1001, at: 1000) == 1)
    #expect(holders.add(1002, at: 1010) == 1)
    let end = 1000 + LockHolders.seconds
    #expect(holders.isNoted(1001, at: end - 1) && !holders.isNoted(1001, at: end))
    #expect(holders.isNoted(1002, at: end) && !holders.isNoted(1002, at: end + 10))
    #expect(holders.add(1001, at: end) == 1)
    #expect(holders.isNoted(1001, at: end))
    #expect(holders.add(1001, at: end + 1) == 2)
  }

  /// The memory is of one size: the one whose time is over first gives way.
  @Test func theOldestGivesWay() {
    for user: UInt32 in 0..<64 { #expect(holders.add(5000 + user, at: 1000 + user) == 1) }
    for user: UInt32 in 0..<64 { #expect(holders.isNoted(5000 + user, at: 1100)) }
    #expect(holders.add(6000, at: 1100) == 1)
    #expect(holders.isNoted(6000, at: 1100))
    #expect(!holders.isNoted(5000, at: 1100) && holders.isNoted(5001, at: 1100))
  }

  /// A worker sees what the keeper notes, in other memory of the same pages.
  @Test func whatOneProcessNotesAnotherSees() throws {
    let other = try SharedMemory(adopting: memory.fd.duplicated())
    let seen = LockHolders(at: other.base, of: other)
    #expect(!seen.contains(1002))
    _ = holders.add(1002)
    #expect(seen.contains(1002))
  }
}

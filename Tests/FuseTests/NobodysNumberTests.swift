// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Fuse
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// As whom a program runs that is to have no rights.
struct NobodysNumberTests {
  /// systemd runs services as these.
  private static let dynamic: ClosedRange<UInt32> = 61_184...65_519

  @Test func itIsNobodys() throws {
    for volume: UInt32 in [0, 1, 7, 40_000_000, .max] {
      let number = try #require(NobodysNumber { _ in false }.find(for: volume))
      #expect(!Self.dynamic.contains(number) && NobodysNumber.ranges[0].contains(number))
      #expect(number != NobodysNumber { _ in false }.find(for: volume &+ 1))
      // What somebody has is left to them.
      let other = try #require(NobodysNumber { $0 == number }.find(for: volume))
      #expect(other != number && NobodysNumber.ranges[0].contains(other))
      // Sixteen bits are all that some have.
      let small = try #require(NobodysNumber { $0 > 65_535 }.find(for: volume))
      #expect(NobodysNumber.ranges[1].contains(small) && !Self.dynamic.contains(small))
    }
    #expect(NobodysNumber { _ in true }.find(for: 1) == nil)
  }

  @Test func onlyNumbersOfTheNamespaceCount() {
    let map = NobodysNumber.ranges(in: "     0     100000      65536\n     70000     1 4294967295\nx\n")
    #expect(map == [0..<65_536, 70_000..<4_295_037_295])
    #expect(NobodysNumber.ranges(in: "0 0 18446744073709551615\n-1 0 5\n0 0\n").isEmpty)
  }

  @Test func accountsAndProcessesOfTheMachineHaveTheirs() throws {
    let machine = NobodysNumber.ofThisMachine
    #expect(machine.isTaken(0) && machine.isTaken(ProcessID.user))
    let number = try #require(machine.find(for: 3))
    #expect(Account.numbered(number) == nil && !Self.dynamic.contains(number))
    guard Program.isRoot else { return }
    let account = try TemporaryAccount()
    #expect(machine.isTaken(account.account.uid))
    let running = try Program.run([
      "setpriv", "--reuid=\(number)", "--clear-groups", "sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!",
    ])
    let pid = try #require(Int32(running.output.dropLast()))
    defer { kill(pid, SIGKILL) }
    #expect(NobodysNumber.ofThisMachine.isTaken(number))
    #expect(NobodysNumber.ofThisMachine.find(for: 3) != number)
  }
}

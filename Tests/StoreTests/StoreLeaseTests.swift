// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing

@testable internal import Store

/// The lease on a store, in files. (`PolicyTests/LeaseTests` has the rules, `make leases` real mounts.)
@Suite struct StoreLeaseTests {
  private static let second: UInt64 = 1_000_000_000
  private let times = LeaseTimes(hold: 3 * second, renewal: second / 2, silence: 6 * second)
  private let temporary: TemporaryDirectory
  private let state: OwnedDirectory

  /// A directory that stays open.
  private final class OwnedDirectory {
    let directory: OwnedFD
    init(_ path: String) throws { directory = try TemporaryDirectory.open(path) }
    var fd: FD { directory.fd }
  }

  init() throws {
    temporary = try TemporaryDirectory()
    state = try OwnedDirectory(temporary.path)
  }

  private func acquire() throws -> StoreLease {
    try StoreLease.acquire(state.fd, path: "/store", times: times)
  }

  /// How many files there are.
  private func count() throws -> Int {
    let directory = try state.fd.openDirectory(LeaseFiles.name)
    return try directory.fd.entries().count
  }

  private func isLost(_ renewal: StoreLease.Renewal) -> Bool {
    if case .lost = renewal { true } else { false }
  }

  private func isDone(_ renewal: StoreLease.Renewal) -> Bool {
    if case .done = renewal { true } else { false }
  }

  @Test func whoRenewsItKeepsItUntilItIsReleased() throws {
    let lease = try acquire()
    try lease.startRenewing { _ in }
    #expect { _ = try acquire() } throws: { error in
      guard case .leased(_, let host)? = error as? StoreError else { return false }
      return host == hostName() && "\(error)".contains("in use on \(host ?? "")")
    }
    lease.release()
    let begun = monotonicNanoseconds()
    let next = try acquire()
    #expect(monotonicNanoseconds() - begun < Self.second)
    #expect(isDone(next.renew()))
    if case .released = lease.renew() {} else { Issue.record("who has released it may not renew it") }
    #expect(try count() == 2)
  }

  /// What a machine leaves that has gone away, or stands still.
  @Test func itIsFreeAfterSilence() throws {
    let lease = try acquire()
    let begun = monotonicNanoseconds()
    let next = try acquire()
    #expect(monotonicNanoseconds() - begun >= times.silence)
    #expect(isLost(lease.renew()) && isLost(lease.continueHere()))
    #expect(isDone(next.renew()))
  }

  /// Who does not wait has it when they look once more; what was renewed meanwhile, they wait for anew.
  @Test func looksAddUp() throws {
    let lease = try acquire()
    var acquisition = LeaseAcquisition(times)
    var next: StoreLease?
    func look() throws -> String {
      let look = try StoreLease.look(at: state.fd, path: "/store", &acquisition, endsProcess: false)
      next = look.lease
      if next != nil { return "had" }
      #expect(look.host == hostName())
      return look.isRenewed ? "renewed" : "silent"
    }
    #expect(try look() == "silent")
    #expect(isDone(lease.renew()))
    #expect(try [look(), look()] == ["renewed", "silent"])
    let begun = monotonicNanoseconds()
    while monotonicNanoseconds() - begun < times.silence { usleep(100_000) }
    #expect(try look() == "had")
    #expect(isDone(try #require(next).renew()) && isLost(lease.renew()))
  }

  /// Several are renewed together, each until its end.
  @Test func severalAreRenewedTogether() throws {
    let times = LeaseTimes(hold: 2 * Self.second, renewal: Self.second / 5, silence: 4 * Self.second)
    var renewal: LeaseRenewal?
    let leases = try (0..<20).map { number in
      let place = try state.fd.openDirectory("\(number)", makingWith: 0o700)
      var acquisition = LeaseAcquisition(times)
      let look = try StoreLease.look(at: place.fd, path: "/store", &acquisition, endsProcess: false)
      let lease = try #require(look.lease)
      if renewal?.add(lease) != true { renewal = try LeaseRenewal(lease) { _ in } }
      return lease
    }
    leases[0].release()
    try state.fd.removeTree("1")
    #expect(eventually { !leases[1].deadline.check() })
    usleep(3_000_000)
    #expect(leases[2...].allSatisfy { $0.deadline.check() })
    for lease in leases { lease.release() }
  }

  /// A process of this machine that is gone leaves nothing to wait for; one of another machine may run still.
  @Test func processesOfThisMachineAreKnownToHaveEnded() throws {
    let own = try #require(ProcessIdentity(running: ProcessID.own))
    #expect(!own.hasEnded)
    let gone = ProcessIdentity(boot: own.boot, namespace: own.namespace, pid: own.pid, began: "1")
    #expect(gone.hasEnded)
    #expect(!ProcessIdentity(boot: "other", namespace: own.namespace, pid: own.pid, began: "1").hasEnded)
    #expect(!ProcessIdentity(boot: own.boot, namespace: "pid:[1]", pid: own.pid, began: "1").hasEnded)
    let files = try LeaseFiles(in: state.fd)
    _ = try files.make(41, LeaseRecord(holder: "x", host: "here", gone))
    let begun = monotonicNanoseconds()
    let lease = try acquire()
    #expect(monotonicNanoseconds() - begun < Self.second && isDone(lease.renew()))
    #expect(try files.top().top.number == 42)
  }

  /// What can't be read may be a machine that has just begun.
  @Test(arguments: ["", "{}", "\0\u{1}{", String(repeating: "[", count: 5000)])
  func whatIsDamagedIsWaitedFor(text: String) throws {
    try temporary.makeDirectory(LeaseFiles.name, mode: 0o700)
    try temporary.write(text, to: "\(LeaseFiles.name)/00000000000000000007")
    try temporary.write("", to: "\(LeaseFiles.name)/not a number")
    let begun = monotonicNanoseconds()
    _ = try acquire()
    #expect(monotonicNanoseconds() - begun >= times.silence)
  }

  @Test func anotherWorkerGoesOn() throws {
    let lease = try acquire()
    #expect(isDone(lease.renew()) && isDone(lease.continueHere()))
    let resumed = try StoreLease(resuming: state.fd, path: "/store", times: times)
    #expect(isDone(resumed.renew()))
    // It is not another machine's, but a new one was taken meanwhile.
    let files = try LeaseFiles(in: state.fd)
    let own = try #require(ProcessIdentity(running: ProcessID.own))
    _ = try files.make(2, LeaseRecord(holder: "x", host: "there", own))
    #expect(isLost(resumed.renew()))
  }

  @Test func oldNumbersAreRemoved() throws {
    let files = try LeaseFiles(in: state.fd)
    let own = try #require(ProcessIdentity(running: ProcessID.own))
    var record = LeaseRecord(holder: "x", host: "there", own)
    record.isReleased = true
    for number in 1...300 as ClosedRange<UInt64> { _ = try files.make(number, record) }
    _ = try acquire()
    #expect(try count() == 257)
  }

  @Test func aProcessEndsWithItsLease() async {
    await #expect(processExitsWith: .exitCode(42)) {
      StoreLease.whenLost { _exit(42) }
      let temporary = try TemporaryDirectory()
      let state = try TemporaryDirectory.open(temporary.path)
      let times = LeaseTimes(hold: 300_000_000, renewal: 100_000_000, silence: 600_000_000)
      let lease = try StoreLease.acquire(state.fd, path: "/store", times: times)
      try lease.startRenewing { _ in }
      // It is renewed for a while.
      for _ in 0..<8 {
        usleep(100_000)
        lease.deadline.check()
      }
      // Then nothing can be written any more.
      try state.fd.removeTree(LeaseFiles.name)
      usleep(5_000_000)
      _exit(1)
    }
  }
}

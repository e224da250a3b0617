// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Policy
internal import Testing

/// Who may use a store that several machines can reach.
@Suite struct LeaseTests {
  private static let second: UInt64 = 1_000_000_000
  private let times = LeaseTimes(hold: 20 * second, renewal: 5 * second, silence: 45 * second)

  /// One that is told what comes of its steps, with times in seconds.
  private final class Machine {
    private var acquisition: LeaseAcquisition

    init(_ times: LeaseTimes) { acquisition = LeaseAcquisition(times) }

    func looked(_ top: LeaseAcquisition.Top, _ asked: UInt64, _ answered: UInt64) -> LeaseAcquisition.Step {
      acquisition.looked(top, asked: asked * second, answered: answered * second)
    }

    func took(_ isMade: Bool, _ begun: UInt64, _ done: UInt64) -> LeaseAcquisition.Step {
      acquisition.took(isMade, begun: begun * second, done: done * second)
    }
  }

  @Test func firstOneTakesIt() {
    let machine = Machine(times)
    #expect(machine.looked(.none, 1, 2) == .take(1))
    #expect(machine.took(true, 3, 4) == .look)
    let term = LeaseTerm(begun: 3 * Self.second, times)
    #expect(machine.looked(.held(number: 1, text: [1]), 5, 6) == .use(number: 1, term))
  }

  @Test func whatIsGivenBackIsTakenAtOnce() {
    let machine = Machine(times)
    #expect(machine.looked(.free(number: 7), 1, 2) == .take(8))
    #expect(machine.took(false, 3, 4) == .look, "somebody was faster")
  }

  @Test func whoRenewsItKeepsIt() {
    let machine = Machine(times)
    #expect(machine.looked(.held(number: 3, text: [1]), 0, 1) == .pause)
    #expect(machine.looked(.held(number: 3, text: [2]), 2, 3) == .giveUp)
  }

  @Test func silenceIsWaitedForFromTheFirstAnswer() {
    let machine = Machine(times)
    let top = LeaseAcquisition.Top.held(number: 3, text: [1])
    #expect(machine.looked(top, 0, 10) == .pause)
    #expect(machine.looked(top, 54, 70) == .pause)
    #expect(machine.looked(top, 55, 56) == .take(4))
    // Whoever stood still meanwhile looks again.
    #expect(machine.took(true, 56, 80) == .look)
    #expect(machine.looked(.held(number: 4, text: []), 81, 82) == .pause)
  }

  @Test func aRenewalThatIsDoneTooLateCountsNot() {
    var term = LeaseTerm(begun: 0, times)
    let isInTime = term.renew(begun: 5 * Self.second, done: 19 * Self.second, times)
    #expect(isInTime && term.end == 25 * Self.second)
    let isLate = !term.renew(begun: 20 * Self.second, done: 25 * Self.second, times)
    #expect(isLate && term.end == 25 * Self.second)
  }

  // MARK: Simulated machines

  private func run(_ seeds: Range<UInt64>, _ times: LeaseTimes, _ behaviour: LeaseSimulation.Behaviour) -> (
    overlaps: Int, uses: Int, machines: Int
  ) {
    var (overlaps, uses, machines) = (0, 0, 0)
    for seed in seeds {
      var simulation = LeaseSimulation(
        seed: seed, machines: 2 + Int(seed % 3), times, behaviour)
      simulation.run(until: 2000)
      if let (one, other) = simulation.overlap {
        overlaps += 1
        if overlaps == 1 { print("\(times.silence / Self.second): seed \(seed): \(one) and \(other)") }
      }
      uses += simulation.uses.count
      machines += Set(simulation.uses.map(\.machine)).count
    }
    return (overlaps, uses, machines)
  }

  /// Schedules of half an hour; `make leases` runs ten thousand of them.
  private var schedules: UInt64 {
    ProcessInfo.processInfo.environment["INSULA_LEASES"].flatMap { UInt64($0) } ?? 500
  }

  @Test func noTwoMachinesHaveItAtOnce() {
    let found = run(0..<schedules, .usual, .init())
    #expect(found.overlaps == 0)
    // It also moves.
    #expect(found.uses > 3 * Int(schedules) && found.machines > Int(schedules) * 3 / 2, "\(found)")
  }

  @Test func badMachinesDoNotChangeThat() {
    var behaviour = LeaseSimulation.Behaviour()
    (behaviour.hangs, behaviour.stands, behaviour.dies, behaviour.releases) = (0.1, 0.1, 0.02, 0.05)
    let found = run(0..<schedules, .usual, behaviour)
    #expect(found.overlaps == 0 && found.uses > 2 * Int(schedules), "\(found)")
  }

  /// The simulation finds what is wrong: times that leave too little between one machine and the next, and a
  /// server of which machines see what is older than those times allow.
  @Test(arguments: [(20, 21, 18.0, 780), (44, 45, 18.0, 62), (20, 45, 60.0, 0)])
  func badTimesAreFoundOut(hold: UInt64, silence: UInt64, visibility: Double, seed: UInt64) {
    let times = LeaseTimes(
      hold: hold * Self.second, renewal: 5 * Self.second, silence: silence * Self.second)
    var behaviour = LeaseSimulation.Behaviour()
    behaviour.visibility = visibility
    #expect(run(seed..<seed + 50, times, behaviour).overlaps > 0)
  }

  /// When a machine goes away another one has the store in time, and not before.
  @Test func itMovesAfterAMachineIsGone() {
    var behaviour = LeaseSimulation.Behaviour()
    (behaviour.hangs, behaviour.stands, behaviour.releases) = (0, 0, 0)
    for seed in 0..<schedules {
      var simulation = LeaseSimulation(seed: seed, machines: 2, .usual, behaviour)
      simulation.run(until: 2000)
      let uses = simulation.uses.sorted { $0.begin < $1.begin }
      for (one, next) in zip(uses, uses.dropFirst()) {
        #expect(next.begin - one.end > 20, "seed \(seed): \(one), \(next)")
      }
      // A machine begins anew after 200 seconds at the latest, waits for 45, and may try again after 60.
      for (one, next) in zip(uses, uses.dropFirst()) {
        #expect(next.begin - one.end < 400, "seed \(seed): \(one), \(next)")
      }
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import TestSupport

/// Machines that want one store on a server, in simulated time: clocks that run differently, answers that
/// take long, reads that show what was there some seconds ago, machines that stand still, go away, and begin
/// anew.
struct LeaseSimulation {
  /// Somebody used the store, from one moment of real time to another.
  struct Use {
    let number: UInt64
    let machine: Int
    let begin: Double
    let end: Double
  }

  struct Behaviour {
    var latency = 0.05
    /// How likely a call takes up to a minute.
    var hangs = 0.01
    /// How likely a machine stands still before a call, for up to a minute and a half.
    var stands = 0.01
    var dies = 0.002
    var releases = 0.005
    /// How much later at most a machine sees what another one has written.
    var visibility = 18.0
  }

  private struct Version {
    let time: Double
    let text: [UInt8]
    let isReleased: Bool
  }

  /// A call to the server: what it does there, and what came of that.
  private enum Call {
    case look, take(UInt64), renew(UInt64), release(UInt64)
  }

  private enum Answer {
    case top(LeaseAcquisition.Top)
    case made(Bool)
    case written
  }

  /// A call is made, reaches the server, and is answered.
  private struct Pending {
    let call: Call
    let begin: Double
    let done: Double
    var answer: Answer?
  }

  private enum Phase {
    case idle
    case acquiring(LeaseAcquisition, LeaseAcquisition.Step)
    case using(number: UInt64, LeaseTerm, since: Double, renewals: UInt8)
  }

  private struct Machine {
    let rate: Double
    let offset: Double
    var next: Double
    var phase = Phase.idle
    var pending: Pending?
    /// The latest moment of the server's that it has seen.
    var view = 0.0

    func local(_ time: Double) -> UInt64 { UInt64((offset + time * rate) * 1e9) }
    func real(_ local: UInt64) -> Double { (Double(local) / 1e9 - offset) / rate }
  }

  private var random: SeededRandom
  private let times: LeaseTimes
  private let behaviour: Behaviour
  private var machines: [Machine]
  private var files: [UInt64: [Version]] = [:]
  private(set) var uses: [Use] = []

  init(seed: UInt64, machines count: Int, _ times: LeaseTimes, _ behaviour: Behaviour) {
    var random = SeededRandom(seed: seed)
    self.times = times
    self.behaviour = behaviour
    machines = (0..<count).map { _ in
      Machine(
        rate: .random(in: 0.998...1.002, using: &random), offset: .random(in: 1...100_000, using: &random),
        next: .random(in: 0...20, using: &random))
    }
    self.random = random
  }

  mutating func run(until end: Double) {
    while let index = machines.indices.min(by: { machines[$0].next < machines[$1].next }),
      machines[index].next < end
    {
      step(index)
    }
    for index in machines.indices { endUse(of: index, at: end) }
  }

  /// Two uses at one time, if there were such.
  var overlap: (Use, Use)? {
    let sorted = uses.sorted { $0.begin < $1.begin }
    var last: Use?
    for use in sorted {
      if let last, use.begin < last.end { return (last, use) }
      if use.end > last?.end ?? 0 { last = use }
    }
    return nil
  }

  // MARK: One step of one machine

  private mutating func chance(_ probability: Double) -> Bool {
    .random(in: 0..<1, using: &random) < probability
  }

  private mutating func wait(_ index: Int, _ seconds: ClosedRange<Double>) {
    machines[index].next += Double.random(in: seconds, using: &random)
  }

  private mutating func step(_ index: Int) {
    if let pending = machines[index].pending {
      if let answer = pending.answer {
        machines[index].pending = nil
        return answered(index, pending, answer)
      }
      let answer = serve(pending.call, of: index, at: machines[index].next)
      machines[index].pending?.answer = answer
      return machines[index].next = pending.done
    }
    if chance(behaviour.stands) { return wait(index, 1...90) }
    if chance(behaviour.dies) {
      endUse(of: index, at: machines[index].next)
      machines[index].phase = .idle
      return wait(index, 1...200)
    }
    switch machines[index].phase {
    case .idle: machines[index].phase = .acquiring(LeaseAcquisition(times), .look)
    case .acquiring(_, let step): acquire(index, step)
    case .using(let number, let term, _, _): use(index, number, term)
    }
  }

  private mutating func call(_ index: Int, _ call: Call) {
    let begin = machines[index].next
    let most = chance(behaviour.hangs) ? 60 : behaviour.latency
    let at = begin + .random(in: 0...most, using: &random)
    machines[index].pending = Pending(
      call: call, begin: begin, done: at + .random(in: 0...most, using: &random))
    machines[index].next = at
  }

  // MARK: The server

  private mutating func serve(_ call: Call, of index: Int, at time: Double) -> Answer {
    switch call {
    case .look: return .top(look(index, at: time))
    case .take(let number):
      guard files[number] == nil else { return .made(false) }
      write(number, [UInt8(truncatingIfNeeded: index), 0], at: time)
      // No machine sees as little as that.
      files = files.filter { $0.key + 8 > number }
      machines[index].view = time
      return .made(true)
    case .renew(let number):
      guard case .using(_, _, _, let renewals) = machines[index].phase else { return .written }
      write(number, [UInt8(truncatingIfNeeded: index), renewals &+ 1], at: time)
    case .release(let number): write(number, [], at: time, isReleased: true)
    }
    return .written
  }

  private mutating func look(_ index: Int, at time: Double) -> LeaseAcquisition.Top {
    let seen = max(machines[index].view, time - .random(in: 0...behaviour.visibility, using: &random))
    machines[index].view = seen
    let number = files.filter { $0.value.contains { $0.time <= seen } }.keys.max()
    guard let number, let version = files[number]?.last(where: { $0.time <= seen }) else { return .none }
    return version.isReleased ? .free(number: number) : .held(number: number, text: version.text)
  }

  private mutating func write(_ number: UInt64, _ text: [UInt8], at time: Double, isReleased: Bool = false) {
    files[number, default: []].append(Version(time: time, text: text, isReleased: isReleased))
  }

  // MARK: What a machine does

  private mutating func acquire(_ index: Int, _ step: LeaseAcquisition.Step) {
    switch step {
    case .look: call(index, .look)
    case .take(let number): call(index, .take(number))
    case .pause:
      guard case .acquiring(let acquisition, _) = machines[index].phase else { return }
      machines[index].phase = .acquiring(acquisition, .look)
      machines[index].next += 1
    case .use(let number, let term):
      machines[index].phase = .using(number: number, term, since: machines[index].next, renewals: 0)
      machines[index].next += 5
    case .giveUp:
      machines[index].phase = .idle
      wait(index, 1...60)
    }
  }

  private mutating func use(_ index: Int, _ number: UInt64, _ term: LeaseTerm) {
    let now = machines[index].next
    guard !term.isOver(at: machines[index].local(now)) else { return lose(index, at: now) }
    if chance(behaviour.releases) {
      // Whoever gives it back has stopped before.
      endUse(of: index, at: now)
      machines[index].phase = .idle
      return call(index, .release(number))
    }
    // What the directory says is looked at first, and costs nothing here.
    guard look(index, at: now).number == number else { return lose(index, at: now) }
    call(index, .renew(number))
  }

  private mutating func answered(_ index: Int, _ pending: Pending, _ answer: Answer) {
    let machine = machines[index]
    let (begun, done) = (machine.local(pending.begin), machine.local(pending.done))
    switch (machine.phase, answer) {
    case (.acquiring(var acquisition, _), .top(let top)):
      let step = acquisition.looked(top, asked: begun, answered: done)
      machines[index].phase = .acquiring(acquisition, step)
    case (.acquiring(var acquisition, _), .made(let isMade)):
      let step = acquisition.took(isMade, begun: begun, done: done)
      machines[index].phase = .acquiring(acquisition, step)
    case (.using(let number, var term, let since, let renewals), .written):
      guard term.renew(begun: begun, done: done, times) else { return lose(index, at: pending.done) }
      machines[index].phase = .using(number: number, term, since: since, renewals: renewals &+ 1)
      machines[index].next += 5
    default: wait(index, 0...30)
    }
  }

  private mutating func lose(_ index: Int, at time: Double) {
    endUse(of: index, at: time)
    machines[index].phase = .idle
    machines[index].next = time + .random(in: 1...60, using: &random)
  }

  /// It stops at the latest when its term is over.
  private mutating func endUse(of index: Int, at time: Double) {
    guard case .using(let number, let term, let since, _) = machines[index].phase else { return }
    let end = min(time, machines[index].real(term.end))
    // Whoever stood still for too long right after it was taken has done nothing with it.
    if end > since { uses.append(Use(number: number, machine: index, begin: since, end: end)) }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import Glibc

/// Takes the samples: contender after contender, round after round, so that a drift of the machine hits all
/// alike.
struct Runner {
  let contenders: [Contender]
  let rounds: Int
  /// How long a sample should be, in nanoseconds.
  let budget: Int64
  /// The rows to measure; empty means all.
  let only: Set<String>
  /// The contenders that are builds of insula.
  let builds: Set<String>
  /// Whether all rows are taken as those are that ask whether two things cost the same; see
  /// ``Group/Order/batchByBatch``.
  let inTurn: Bool

  private static let workDirectory = "work"

  /// Measures the rows of a group and gives the results in the table's order.
  func run(_ group: Group) -> [Row] {
    let workloads = group.workloads.filter { only.isEmpty || only.contains($0.name) }
    guard group.isOfInsulaOnly else { return workloads.isEmpty ? [] : run(group, workloads, contenders) }
    let taking = contenders.enumerated().filter { $0.offset == 0 || builds.contains($0.element.name) }
    return workloads.isEmpty || taking.count < 2 ? [] : run(group, workloads, taking.map(\.element))
  }

  private func run(_ group: Group, _ workloads: [any Workload], _ contenders: [Contender]) -> [Row] {
    var rows = workloads.map { Row(name: $0.name, title: $0.title, unit: $0.unit, series: [:]) }
    for contender in contenders {
      var failure: String?
      do {
        try enter(contender, group)
      } catch {
        failure = error.description
      }
      for index in rows.indices { rows[index].series[contender.name] = Series(samples: [], failure: failure) }
    }
    let rounds = min(rounds, group.mostRounds)
    switch group.order {
    case .rowByRow where !inTurn:
      for index in workloads.indices {
        complain("  \(workloads[index].title)")
        warmUp(group, workloads[index], &rows[index], contenders)
        for round in 1...rounds {
          for contender in turns(contenders, in: round) {
            sample(contender, group, workloads[index], &rows[index])
          }
        }
      }
    case .rowByRow, .batchByBatch:
      for index in workloads.indices {
        complain("  \(workloads[index].title)")
        warmUp(group, workloads[index], &rows[index], contenders)
        for round in 1...rounds {
          sampleInTurn(turns(contenders, in: round), group, workloads[index], &rows[index])
        }
      }
    case .together where inTurn:
      for round in 1...rounds {
        complain("  \(workloads.map(\.name).joined(separator: ", ")): round \(round)")
        for index in workloads.indices {
          sampleInTurn(turns(contenders, in: round), group, workloads[index], &rows[index])
        }
      }
    case .together:
      for round in 1...rounds {
        for contender in turns(contenders, in: round) {
          complain("  \(workloads.map(\.name).joined(separator: ", ")): \(contender.name), round \(round)")
          for index in workloads.indices { sample(contender, group, workloads[index], &rows[index]) }
        }
      }
    }
    chdir("/")
    for contender in contenders {
      try? Child.run(["rm", "-rf", "\(contender.directory)/\(Self.workDirectory)/\(group.name)"])
    }
    return rows
  }

  /// Who comes when: there and back again, since who comes after whom makes a difference of several percent.
  private func turns(_ contenders: [Contender], in round: Int) -> [Contender] {
    round.isMultiple(of: 2) ? contenders.reversed() : contenders
  }

  /// The first sample of each contender; it is shorter, and not kept unless it fails.
  private func warmUp(_ group: Group, _ workload: any Workload, _ row: inout Row, _ contenders: [Contender]) {
    for contender in contenders {
      sample(contender, group, workload, &row, budget: budget / 3)
      row.series[contender.name]?.samples = []
    }
  }

  private func sample(
    _ contender: Contender, _ group: Group, _ workload: any Workload, _ row: inout Row, budget: Int64? = nil
  ) {
    if row.series[contender.name]?.failure != nil { return }
    do {
      try enter(contender, group)
      let sample = try measure(
        workload, for: contender, Meter(budget: budget ?? self.budget, pid: contender.pid))
      row.series[contender.name]?.samples.append(sample)
    } catch {
      fail(&row, contender.name, error)
    }
    settle(contenders.first?.directory ?? contender.directory)
  }

  private func measure(
    _ workload: any Workload, for contender: Contender, _ freshMeter: Meter
  ) throws(Failure) -> Sample {
    var workload = workload
    var meter = freshMeter
    defer { workload.tearDown() }
    try workload.setUp(for: contender)
    // What surrounds the timed part is bounded too: a contender that is slow to set up gets fewer batches.
    let end = monotonicNanoseconds() + 4 * meter.budget
    repeat {
      try workload.batch(&meter)
    } while workload.repeats && meter.elapsed < meter.budget && monotonicNanoseconds() < end
    guard let sample = meter.sample else { throw Failure("nothing was timed") }
    return sample
  }

  /// A sample of each contender at the same time, batch by batch, until each has had its time or one has
  /// failed.
  private func sampleInTurn(
    _ contenders: [Contender], _ group: Group, _ workload: any Workload, _ row: inout Row
  ) {
    var runs: [Run] = []
    defer { for index in runs.indices { runs[index].workload.tearDown() } }
    for contender in contenders where row.series[contender.name]?.failure == nil {
      var run = Run(
        contender: contender, workload: workload, meter: Meter(budget: budget, pid: contender.pid))
      do {
        try enter(contender, group)
        try run.workload.setUp(for: contender)
        runs.append(run)
      } catch {
        run.workload.tearDown()
        fail(&row, contender.name, error)
      }
    }
    // A batch takes one of them much longer than another; nobody waits until the fastest has had its time.
    let end = monotonicNanoseconds() + 3 * budget * Int64(runs.count)
    repeat {
      for index in runs.indices {
        do {
          if inTurn { try enter(runs[index].contender, group) }
          try runs[index].batch()
        } catch {
          return fail(&row, runs[index].contender.name, error)
        }
        if !workload.repeats { settle(contenders[0].directory) }
      }
    } while workload.repeats && runs.contains(where: { $0.meter.elapsed < budget })
      && monotonicNanoseconds() < end
    settle(contenders[0].directory)
    for run in runs {
      if let sample = run.meter.sample { row.series[run.contender.name]?.samples.append(sample) }
    }
  }

  /// A sample that is being taken while others are.
  private struct Run {
    let contender: Contender
    var workload: any Workload
    var meter: Meter

    mutating func batch() throws(Failure) { try workload.batch(&meter) }
  }

  private func fail(_ row: inout Row, _ contender: String, _ failure: Failure) {
    complain("    \(contender): \(failure.description)")
    row.series[contender]?.failure = failure.description
  }

  private func enter(_ contender: Contender, _ group: Group) throws(Failure) {
    let work = "\(contender.directory)/\(Self.workDirectory)"
    try makeDirectory(work)
    try makeDirectory("\(work)/\(group.name)")
    try check(chdir("\(work)/\(group.name)"), "chdir")
  }
}

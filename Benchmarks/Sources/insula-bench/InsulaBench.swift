// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CBench
import Glibc

/// Measures directories against each other; `mount-scripts/bench.sh` sets them up.
@main
struct InsulaBench {
  static func main() {
    do {
      try run(try Arguments(Array(CommandLine.arguments.dropFirst())))
    } catch {
      complain("insula-bench: \(error.description)")
      exit(1)
    }
  }

  private static func run(_ arguments: Arguments) throws(Failure) {
    signal(SIGPIPE, SIG_IGN)
    let samples = Samples(scratch: arguments.scratch)
    let groups = Catalogue.groups(samples, arguments)
    if arguments.lists {
      for workload in groups.flatMap(\.workloads) { print("\(workload.name)\t\(workload.title)") }
    } else if arguments.worker.count == 3 {
      guard let job = WorkerJob(rawValue: arguments.worker[0]), let time = Int64(arguments.worker[2]) else {
        throw Failure("--worker JOB DIR NANOSECONDS")
      }
      try job.work(in: arguments.worker[1], nanoseconds: time)
    } else if arguments.memory.count == 2 {
      let place = arguments.memory[0]
      guard let contender = Contender(name: place, place: place), let files = Int(arguments.memory[1]) else {
        throw Failure("--memory /DIR:PID FILES")
      }
      print(try MemoryGrowth(contender, files: files).measure())
    } else if let app = arguments.runStart {
      print(try RunStart(app: RunningApp(app), scratch: arguments.scratch).measure())
    } else if arguments.manyViews.count == 3 {
      guard let pid = pid_t(arguments.manyViews[1]), let count = Int(arguments.manyViews[2]), count > 3 else {
        throw Failure("--many-views INSULA,STORE,ID PID COUNT")
      }
      print(try ManyViews(app: RunningApp(arguments.manyViews[0]), pid: pid, count: count).measure())
    } else if arguments.takeMount.count == 3 {
      guard let pid = pid_t(arguments.takeMount[0]) else { throw Failure("--take-mount PID PATH DIR") }
      let error = bench_take_mount(pid, arguments.takeMount[1], arguments.takeMount[2])
      if error != 0 { throw Failure("\(arguments.takeMount[1]): \(String(cString: strerror(error)))") }
    } else {
      try compare(arguments, samples, groups)
    }
  }

  private static func compare(
    _ arguments: Arguments, _ samples: Samples, _ groups: [Group]
  ) throws(Failure) {
    if arguments.contenders.isEmpty { throw Failure(Arguments.usage) }
    let unknown = arguments.only.subtracting(groups.flatMap(\.workloads).map(\.name))
    if let row = unknown.sorted().first { throw Failure("no such row: \(row) (see --list)") }
    var expectations: Expectations?
    if let file = arguments.expectations { expectations = try Expectations.read(file) }
    try samples.make()

    let runner = Runner(
      contenders: arguments.contenders, rounds: arguments.rounds, budget: Int64(arguments.seconds * 1e9),
      only: arguments.only, builds: Set(arguments.programs.keys), inTurn: arguments.inTurn)
    var report = Report(
      facts: arguments.facts, contenders: arguments.contenders.map(\.name), rounds: arguments.rounds,
      secondsPerSample: arguments.seconds, rows: [])
    // Kept after each group: should a contender hang, what was measured before is not lost.
    for group in groups {
      report.rows += runner.run(group)
      if let file = arguments.markdown { try writeFile(file, Array(report.markdown(expectations).utf8)) }
      if let file = arguments.json { try writeFile(file, try report.json()) }
    }
    print(report.markdown(expectations), terminator: "")
  }
}

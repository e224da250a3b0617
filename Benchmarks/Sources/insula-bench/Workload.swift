// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CBench
import Glibc

/// What a rate counts.
enum Unit: String, Codable {
  case operations = "op/s"
  case mebibytes = "MiB/s"
  case runs = "run/s"
}

/// Something to be timed; a fresh copy is used for every sample.
///
/// The current directory is the contender's work directory of the group, and all paths are relative to it, so
/// that the depth of a mount point costs nobody anything.
protocol Workload {
  /// The row's name, as `--only` takes it.
  var name: String { get }
  /// The row's title in the table.
  var title: String { get }
  var unit: Unit { get }
  /// Whether batches repeat until the sample's time is up; a long program runs once a sample.
  var repeats: Bool { get }

  /// Makes what the batches need, untimed; what an earlier sample left may be used again.
  mutating func setUp() throws(Failure)
  /// The same, for rows in which contenders don't all do the same.
  mutating func setUp(for contender: Contender) throws(Failure)
  /// Does a fixed amount of work inside `meter.time`; what surrounds that call is untimed.
  mutating func batch(_ meter: inout Meter) throws(Failure)
  /// Gives back what the process holds (descriptors, mappings), untimed.
  mutating func tearDown()
}

extension Workload {
  var unit: Unit { .operations }
  var repeats: Bool { true }
  mutating func setUp() throws(Failure) {}
  mutating func setUp(for contender: Contender) throws(Failure) { try setUp() }
  mutating func tearDown() {}
}

/// Adds up the timed parts of one sample: operations, time, and CPU time of the serving process.
struct Meter {
  /// How long a sample should be, in nanoseconds.
  let budget: Int64
  private let pid: pid_t?
  private var operations = 0
  private var cpu: Int64 = 0
  private(set) var elapsed: Int64 = 0

  init(budget: Int64, pid: pid_t?) {
    self.budget = budget
    self.pid = pid
  }

  /// Times a closure that does so many operations.
  mutating func time(_ count: Int, _ body: () throws(Failure) -> Void) throws(Failure) {
    let cpuBefore = servingCPU()
    let before = monotonicNanoseconds()
    try body()
    let after = monotonicNanoseconds()
    add(count, elapsed: after - before, cpu: servingCPU() - cpuBefore)
  }

  /// Adds operations that were timed elsewhere.
  mutating func add(_ count: Int, elapsed: Int64, cpu: Int64) {
    operations += count
    self.elapsed += elapsed
    self.cpu += cpu
  }

  /// CPU time the serving process has used until now, in nanoseconds.
  func servingCPU() -> Int64 { pid.map { max(0, bench_process_cpu_ns($0)) } ?? 0 }

  /// The sample; nil if nothing was timed.
  var sample: Sample? {
    guard operations > 0, elapsed > 0 else { return nil }
    return Sample(
      rate: Double(operations) * 1e9 / Double(elapsed),
      cpuMicroseconds: pid == nil ? nil : Double(cpu) / 1000 / Double(operations))
  }
}

/// One measurement: operations (or MiB, or runs) per second, and the daemon's microseconds of CPU for each.
struct Sample: Codable {
  let rate: Double
  let cpuMicroseconds: Double?
}

/// Rows that share a work directory in each contender.
struct Group {
  /// In which order samples are taken.
  enum Order {
    /// Row by row, and within a row contender after contender, round after round.
    case rowByRow
    /// All rows of a contender in order, then the next contender: for rows that build on each other.
    case together
    /// Row by row, and in each sample a batch of each contender in turn: for rows that ask whether two things
    /// cost the same, since what disturbs one disturbs the other as well. The current directory is not
    /// changed between batches of a row that is always taken so.
    case batchByBatch
  }

  let name: String
  let order: Order
  /// The most rounds this group takes; programs are long and need fewer.
  let mostRounds: Int
  /// Whether only the plain directory and builds of insula take part.
  var isOfInsulaOnly = false
  let workloads: [any Workload]
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CBench
import Glibc

/// Some processes at once, each in its own directory.
///
/// They are this program again, as `--worker JOB DIR NANOSECONDS`.
struct SeveralProcesses: Workload {
  let name: String
  let title: String
  let repeats = false
  private let count: Int
  private let job: WorkerJob

  init(name: String, title: String, count: Int, job: WorkerJob) {
    self.name = name
    self.title = title
    self.count = count
    self.job = job
  }

  mutating func batch(_ meter: inout Meter) throws(Failure) {
    var workers: [Child] = []
    for number in 1...count {
      let arguments = [
        "/proc/self/exe", "--worker", job.rawValue, "\(name)-\(number)", String(meter.budget),
      ]
      workers.append(try Child(arguments, pipes: true))
    }
    var failure: Failure?
    for worker in workers where Self.line(worker.output) != "ready" {
      failure = Failure("a worker did not start")
    }
    let cpuBefore = meter.servingCPU()
    for worker in workers { _ = write(worker.input, "\n", 1) }
    var operations = 0
    var longest: Int64 = 0
    for worker in workers {
      let numbers = Self.line(worker.output).split(separator: " ").compactMap { Int64($0) }
      guard numbers.count == 2 else {
        failure = Failure("a worker did not finish")
        continue
      }
      operations += Int(numbers[0])
      longest = max(longest, numbers[1])
    }
    let cpu = meter.servingCPU() - cpuBefore
    for worker in workers { try worker.wait() }
    if let failure { throw failure }
    meter.add(operations, elapsed: longest, cpu: cpu)
  }

  private static func line(_ descriptor: Int32) -> String {
    var bytes: [UInt8] = []
    var byte: UInt8 = 0
    while read(descriptor, &byte, 1) == 1, byte != 10 { bytes.append(byte) }
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// What one of several processes does, over and over.
enum WorkerJob: String {
  case createStatUnlink = "create-stat-unlink"
  case openRead = "open-read"
  /// A request, and then about as much work of the program's own.
  case requestCompute = "request-compute"

  /// Says ready, waits for a line, works for so long, and prints how many operations took how many
  /// nanoseconds.
  func work(in directory: String, nanoseconds: Int64) throws(Failure) {
    try makeDirectory(directory)
    try check(chdir(directory), "chdir")
    var block = [UInt8](repeating: 3, count: 4096)
    let names = Names("w", count: 20)
    names.unlinkAll()
    if self != .createStatUnlink { try names.create(block) }
    _ = write(1, "ready\n", 6)
    var byte: UInt8 = 0
    _ = read(0, &byte, 1)
    let start = monotonicNanoseconds()
    var now = start
    var operations = 0
    while now - start < nanoseconds {
      for index in 0..<names.count { try step(names[index], &block) }
      operations += names.count
      now = monotonicNanoseconds()
    }
    let result = "\(operations) \(now - start)\n"
    _ = write(1, result, result.utf8.count)
  }

  private func step(_ name: UnsafePointer<CChar>, _ block: inout [UInt8]) throws(Failure) {
    switch self {
    case .createStatUnlink:
      var status = stat()
      close(try check(open(name, O_CREAT | O_EXCL | O_WRONLY, 0o644), "create"))
      try check(stat(name, &status), "stat")
      try check(unlink(name), "unlink")
    case .openRead:
      try openReadClose(name, &block)
    case .requestCompute:
      // A name that is never there; the kernel does not remember that, so it asks each time.
      guard getxattr(name, "user.none", &block, block.count) < 0, errno == ENODATA else {
        throw Failure("getxattr of an attribute that is not there")
      }
      block[0] = Self.compute(block[0])
    }
  }

  /// Some twenty microseconds of arithmetic: an amount of work and not a time, so that it takes longer where
  /// something else has taken the processor.
  @inline(never)
  private static func compute(_ seed: UInt8) -> UInt8 {
    var word = UInt64(seed) | 1
    for _ in 0..<15_000 {
      word ^= word << 13
      word ^= word >> 7
      word ^= word << 17
    }
    return UInt8(truncatingIfNeeded: word)
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import Glibc

/// Two processes at once, each in its own directory.
///
/// They are this program again, as `--worker JOB DIR NANOSECONDS`.
struct TwoProcesses: Workload {
  let name: String
  let title: String
  let repeats = false
  private let job: WorkerJob

  init(name: String, title: String, job: WorkerJob) {
    self.name = name
    self.title = title
    self.job = job
  }

  mutating func batch(_ meter: inout Meter) throws(Failure) {
    var workers: [Child] = []
    for directory in ["\(name)-1", "\(name)-2"] {
      let arguments = ["/proc/self/exe", "--worker", job.rawValue, directory, String(meter.budget)]
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

  /// Says ready, waits for a line, works for so long, and prints how many operations took how many
  /// nanoseconds.
  func work(in directory: String, nanoseconds: Int64) throws(Failure) {
    try makeDirectory(directory)
    try check(chdir(directory), "chdir")
    var block = [UInt8](repeating: 3, count: 4096)
    let names = Names("w", count: 20)
    names.unlinkAll()
    if self == .openRead { try names.create(block) }
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
    }
  }
}

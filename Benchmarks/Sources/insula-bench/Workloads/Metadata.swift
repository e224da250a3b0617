// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import Glibc

/// Files that metadata rows go round, so that no row lives off a single inode.
private let fileCount = 100

/// stat of files the kernel has just seen.
struct StatFiles: Workload {
  let name: String
  let title: String
  private let names: Names

  init(name: String, title: String, count: Int) {
    self.name = name
    self.title = title
    names = Names("f", count: count)
  }

  mutating func setUp() throws(Failure) { try names.create() }

  mutating func batch(_ meter: inout Meter) throws(Failure) {
    var status = stat()
    try meter.time(10_000) { () throws(Failure) in
      for _ in 0..<(10_000 / names.count) {
        for index in 0..<names.count { try check(stat(names[index], &status), "stat") }
      }
    }
  }
}

/// stat of a name that does not exist, asked again and again.
struct StatMissing: Workload {
  let name = "stat-missing"
  let title = "stat of a missing name, warm"
  private let names = Names("missing")

  mutating func batch(_ meter: inout Meter) throws(Failure) {
    var status = stat()
    try meter.time(10_000) { () throws(Failure) in
      for _ in 0..<10_000 where stat(names[0], &status) == 0 { throw Failure("a missing file exists") }
    }
  }
}

/// stat of a file below eight directories.
struct StatDeep: Workload {
  let name = "stat-deep"
  let title = "stat eight levels deep, warm"
  private let names = Names("a/b/c/d/e/f/g/h/file")

  mutating func setUp() throws(Failure) {
    var path = ""
    for level in ["a", "b", "c", "d", "e", "f", "g", "h"] {
      path += level
      try makeDirectory(path)
      path += "/"
    }
    try names.create()
  }

  mutating func batch(_ meter: inout Meter) throws(Failure) {
    var status = stat()
    try meter.time(10_000) { () throws(Failure) in
      for _ in 0..<10_000 { try check(stat(names[0], &status), "stat") }
    }
  }
}

/// open, read of 4 KiB, close.
struct OpenRead: Workload {
  let name = "open-read"
  let title = "open + read 4 KiB + close"
  private let names = Names("r", count: fileCount)
  private var block = [UInt8](repeating: 7, count: 4096)

  mutating func setUp() throws(Failure) { try names.create(block) }

  mutating func batch(_ meter: inout Meter) throws(Failure) {
    try meter.time(1000) { () throws(Failure) in
      for round in 0..<1000 { try openReadClose(names[round % fileCount], &block) }
    }
  }
}

/// One open, read to the end of the block, close.
@inline(__always)
func openReadClose(_ name: UnsafePointer<CChar>, _ block: inout [UInt8]) throws(Failure) {
  let file = try check(open(name, O_RDONLY), "open")
  let count = read(file, &block, block.count)
  close(file)
  if count != block.count { throw Failure("read: \(count) of \(block.count) bytes") }
}

/// chmod, to another mode each time.
struct ChangeMode: Workload {
  let name = "chmod"
  let title = "chmod"
  private let names = Names("m", count: fileCount)

  mutating func setUp() throws(Failure) { try names.create() }

  mutating func batch(_ meter: inout Meter) throws(Failure) {
    try meter.time(1000) { () throws(Failure) in
      for round in 0..<1000 {
        let mode: mode_t = (round / fileCount) % 2 == 0 ? 0o600 : 0o644
        try check(chmod(names[round % fileCount], mode), "chmod")
      }
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import Glibc

private let fileName = "data"
private let fileSize = 256 << 20
private let mebibyte = 1 << 20

/// Opens the file that the data rows share, and fills it if it is not there yet.
private func openData() throws(Failure) -> Int32 {
  let file = open(fileName, O_CREAT | O_RDWR, 0o644)
  if file < 0 { throw Failure.call("open", fileName) }
  let block = [UInt8](repeating: 0x55, count: mebibyte)
  if lseek(file, 0, SEEK_END) != fileSize {
    for offset in stride(from: 0, to: fileSize, by: mebibyte) {
      try check(pwrite(file, block, mebibyte, offset), "pwrite")
    }
  }
  return file
}

/// A pass over the whole file in blocks of 1 MiB, reading (from a warm page cache) or overwriting.
struct SequentialPass: Workload {
  let name: String
  let title: String
  let unit = Unit.mebibytes
  private let writes: Bool
  private var file: Int32 = -1
  /// What is read into and written from: the same for all contenders, in one huge page where there is one.
  ///
  /// How a megabyte lies in the processor's cache depends on the pages that it is made of, and with what the
  /// heap happens to have one contender writes half as fast again as the other.
  private let block: UnsafeMutableRawPointer

  init(name: String, title: String, writes: Bool) {
    self.name = name
    self.title = title
    self.writes = writes
    let hugePage = 2 << 20
    block = .allocate(byteCount: hugePage, alignment: hugePage)
    madvise(block, hugePage, MADV_HUGEPAGE)
    memset(block, 0x66, hugePage)
  }

  mutating func setUp() throws(Failure) {
    file = try openData()
    for offset in stride(from: 0, to: fileSize, by: mebibyte) {
      try check(pread(file, block, mebibyte, offset), "pread")
    }
  }

  mutating func batch(_ meter: inout Meter) throws(Failure) {
    try meter.time(fileSize / mebibyte) { () throws(Failure) in
      for offset in stride(from: 0, to: fileSize, by: mebibyte) {
        let count =
          writes ? pwrite(file, block, mebibyte, offset) : pread(file, block, mebibyte, offset)
        if count != mebibyte { throw Failure.call(writes ? "pwrite" : "pread") }
      }
    }
  }

  mutating func tearDown() { close(file) }
}

/// pread or pwrite of 4 KiB at random places.
struct RandomAccess: Workload {
  let name: String
  let title: String
  private let writes: Bool
  private var file: Int32 = -1
  private var block = [UInt8](repeating: 0x77, count: 4096)
  private var offsets: [Int] = []

  init(name: String, title: String, writes: Bool) {
    self.name = name
    self.title = title
    self.writes = writes
  }

  mutating func setUp() throws(Failure) {
    file = try openData()
    var large = [UInt8](repeating: 0, count: mebibyte)
    for offset in stride(from: 0, to: fileSize, by: mebibyte) {
      try check(pread(file, &large, mebibyte, offset), "pread")
    }
    var dice = Dice(seed: 1)
    offsets = (0..<4096).map { _ in Int.random(in: 0..<(fileSize / 4096), using: &dice) * 4096 }
  }

  mutating func batch(_ meter: inout Meter) throws(Failure) {
    try meter.time(offsets.count) { () throws(Failure) in
      for offset in offsets {
        let count = writes ? pwrite(file, block, 4096, offset) : pread(file, &block, 4096, offset)
        if count != 4096 { throw Failure.call(writes ? "pwrite" : "pread") }
      }
    }
  }

  mutating func tearDown() { close(file) }
}

/// pwrite of 4 KiB, then fsync.
struct WriteSync: Workload {
  let name = "write-fsync"
  let title = "write 4 KiB + fsync"
  private var file: Int32 = -1
  private let block = [UInt8](repeating: 0x11, count: 4096)

  mutating func setUp() throws(Failure) { file = try openData() }

  mutating func batch(_ meter: inout Meter) throws(Failure) {
    try meter.time(50) { () throws(Failure) in
      for index in 0..<50 {
        try check(pwrite(file, block, 4096, index * 4096), "pwrite")
        try check(fsync(file), "fsync")
      }
    }
  }

  mutating func tearDown() { close(file) }
}

/// A fresh shared mapping of 64 MiB, one word of each page read and written.
struct MapShared: Workload {
  let name = "mmap"
  let title = "mmap 64 MiB, read + write each page"
  private static let length = 64 << 20
  private var file: Int32 = -1

  mutating func setUp() throws(Failure) { file = try openData() }

  mutating func batch(_ meter: inout Meter) throws(Failure) {
    let length = Self.length
    var mapping: UnsafeMutableRawPointer?
    defer { if let mapping { munmap(mapping, length) } }
    try meter.time(length / 4096) { () throws(Failure) in
      let address = mmap(nil, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
      guard let address, address != MAP_FAILED else { throw Failure.call("mmap") }
      mapping = address
      for offset in stride(from: 0, to: length, by: 4096) {
        let word = address.load(fromByteOffset: offset, as: UInt64.self)
        address.storeBytes(of: word &+ 1, toByteOffset: offset, as: UInt64.self)
      }
    }
  }

  mutating func tearDown() { close(file) }
}

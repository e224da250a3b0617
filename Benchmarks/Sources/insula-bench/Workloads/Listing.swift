// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import Glibc

/// opendir, readdir to the end, closedir of a directory of 1,000 entries; with or without a stat of each.
struct ListDirectory: Workload {
  let name: String
  let title: String
  private let withStat: Bool
  private static let entries = 1000
  private let names = Names("list/entry", count: entries)

  init(name: String, title: String, withStat: Bool) {
    self.name = name
    self.title = title
    self.withStat = withStat
  }

  mutating func setUp() throws(Failure) {
    if exists("list") { return }
    try makeDirectory("list")
    try names.create()
  }

  mutating func batch(_ meter: inout Meter) throws(Failure) {
    try meter.time(10) { () throws(Failure) in
      for _ in 0..<10 {
        let count = try list()
        if count != Self.entries + 2 { throw Failure("readdir: \(count) entries of \(Self.entries + 2)") }
      }
    }
  }

  private func list() throws(Failure) -> Int {
    guard let directory = opendir("list") else { throw Failure.call("opendir") }
    defer { closedir(directory) }
    let handle = dirfd(directory)
    let nameOffset = MemoryLayout<dirent>.offset(of: \.d_name) ?? 19
    var status = stat()
    var count = 0
    while let entry = readdir(directory) {
      count += 1
      guard withStat else { continue }
      let name = (UnsafeRawPointer(entry) + nameOffset).assumingMemoryBound(to: CChar.self)
      try check(fstatat(handle, name, &status, AT_SYMLINK_NOFOLLOW), "fstatat")
    }
    return count
  }
}

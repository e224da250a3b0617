// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import Glibc

/// open, read of 4 KiB, close of files of an installed app that have been opened before, compared to the same
/// with ordinary files on the same mount of insula: what a file's seal costs once its bytes have been
/// checked.
struct OpenSealed: Workload {
  let name = "open-sealed"
  let title = "open + read again, of an app / ordinary"

  /// By contender: the directory of its installed app.
  private let apps: [String: String]
  /// Where the ordinary files are, on the mount of the first build of insula.
  private let place: String
  /// The contender that opens them.
  private let plain: String
  private let names = Names("r", count: 100)
  private var block = [UInt8](repeating: 7, count: 4096)
  private var directory: Int32 = -1

  init(_ arguments: Arguments) {
    apps = arguments.apps
    let build = arguments.contenders.first { arguments.programs[$0.name] != nil }
    place = (build?.directory ?? "") + "/work/ordinary"
    plain = arguments.contenders.first?.name ?? ""
  }

  mutating func setUp(for contender: Contender) throws(Failure) {
    if contender.name == plain {
      try makeDirectory(place)
      try check(chdir(place), "chdir")
      try names.create(block)
      try open(place)
    } else if let app = apps[contender.name] {
      try open(app)
      try waitUntilSettled()
    } else {
      throw Failure("no --app of its own")
    }
    try pass()
  }

  mutating func batch(_ meter: inout Meter) throws(Failure) {
    try meter.time(names.count) { () throws(Failure) in try pass() }
  }

  mutating func tearDown() {
    if directory >= 0 { close(directory) }
    directory = -1
  }

  private mutating func open(_ path: String) throws(Failure) {
    directory = Glibc.open(path, O_RDONLY | O_DIRECTORY)
    if directory < 0 { throw Failure.call("open", path) }
  }

  /// What has only just been written is read again at each open, since it might change unseen.
  private func waitUntilSettled() throws(Failure) {
    var status = stat()
    for index in 0..<names.count {
      try check(fstatat(directory, names[index], &status, 0), "stat")
      while time(nil) - status.st_ctim.tv_sec < 3 { usleep(100_000) }
    }
  }

  private mutating func pass() throws(Failure) {
    for index in 0..<names.count {
      let file = try check(openat(directory, names[index], O_RDONLY), "open")
      let count = read(file, &block, block.count)
      close(file)
      if count != block.count { throw Failure("read: \(count) of \(block.count) bytes") }
    }
  }
}

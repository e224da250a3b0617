// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import Glibc

/// How many names a batch makes or removes; each batch starts from the same directory, so all contenders do
/// the same work however fast they are.
private let batchSize = 500

/// open(O_CREAT | O_EXCL) and close.
struct CreateFiles: Workload {
  let name = "create"
  let title = "create (open O_EXCL + close)"
  private let names = Names("c", count: batchSize)

  mutating func setUp() throws(Failure) { names.unlinkAll() }

  mutating func batch(_ meter: inout Meter) throws(Failure) {
    try meter.time(batchSize) { () throws(Failure) in
      for index in 0..<batchSize {
        close(try check(open(names[index], O_CREAT | O_EXCL | O_WRONLY, 0o644), "create"))
      }
    }
    names.unlinkAll()
  }
}

/// unlink of an empty file.
struct UnlinkFiles: Workload {
  let name = "unlink"
  let title = "unlink"
  private let names = Names("u", count: batchSize)

  mutating func batch(_ meter: inout Meter) throws(Failure) {
    try names.create()
    try meter.time(batchSize) { () throws(Failure) in
      for index in 0..<batchSize { try check(unlink(names[index]), "unlink") }
    }
  }
}

/// rename within a directory, to a name that is free.
struct RenameFiles: Workload {
  let name = "rename"
  let title = "rename in a directory"
  private let names = Names("old", count: batchSize)
  private let others = Names("new", count: batchSize)

  mutating func setUp() throws(Failure) {
    others.unlinkAll()
    try names.create()
  }

  mutating func batch(_ meter: inout Meter) throws(Failure) {
    try meter.time(2 * batchSize) { () throws(Failure) in
      for index in 0..<batchSize { try check(rename(names[index], others[index]), "rename") }
      for index in 0..<batchSize { try check(rename(others[index], names[index]), "rename") }
    }
  }
}

/// mkdir.
struct MakeDirectories: Workload {
  let name = "mkdir"
  let title = "mkdir"
  private let names = Names("d", count: batchSize)

  mutating func setUp() throws(Failure) {
    for index in 0..<batchSize { rmdir(names[index]) }
  }

  mutating func batch(_ meter: inout Meter) throws(Failure) {
    try meter.time(batchSize) { () throws(Failure) in
      for index in 0..<batchSize { try check(mkdir(names[index], 0o755), "mkdir") }
    }
    for index in 0..<batchSize { rmdir(names[index]) }
  }
}

/// rmdir of an empty directory.
struct RemoveDirectories: Workload {
  let name = "rmdir"
  let title = "rmdir"
  private let names = Names("e", count: batchSize)

  mutating func batch(_ meter: inout Meter) throws(Failure) {
    for index in 0..<batchSize { mkdir(names[index], 0o755) }
    try meter.time(batchSize) { () throws(Failure) in
      for index in 0..<batchSize { try check(rmdir(names[index]), "rmdir") }
    }
  }
}

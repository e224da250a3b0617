// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CBench
import Glibc

private let fileCount = 100
private let attribute = "user.bench"
private let value = [UInt8](repeating: 97, count: 16)

/// setxattr of a short value.
struct SetAttribute: Workload {
  let name = "setxattr"
  let title = "setxattr, 16 bytes"
  private let names = Names("x", count: fileCount)

  mutating func setUp() throws(Failure) { try names.create() }

  mutating func batch(_ meter: inout Meter) throws(Failure) {
    var bytes = value
    let key = Names(attribute)
    try meter.time(1000) { () throws(Failure) in
      for round in 0..<1000 {
        bytes[0] = UInt8(truncatingIfNeeded: round / fileCount)
        try check(setxattr(names[round % fileCount], key[0], bytes, bytes.count, 0), "setxattr")
      }
    }
  }
}

/// getxattr of a short value that is there.
struct GetAttribute: Workload {
  let name = "getxattr"
  let title = "getxattr, 16 bytes"
  private let names = Names("y", count: fileCount)

  mutating func setUp() throws(Failure) {
    try names.create()
    let key = Names(attribute)
    for index in 0..<fileCount {
      try check(setxattr(names[index], key[0], value, value.count, 0), "setxattr")
    }
  }

  mutating func batch(_ meter: inout Meter) throws(Failure) {
    var bytes = value
    let key = Names(attribute)
    try meter.time(1000) { () throws(Failure) in
      for round in 0..<1000 {
        try check(getxattr(names[round % fileCount], key[0], &bytes, bytes.count), "getxattr")
      }
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import CLinux
import Glibc

/// Uses a file that comes and goes, as fast as it can, and notes in a file that others look into when it
/// began what has last succeeded, and how often something has.
///
/// `kind` is `read`, `write` or `map`; the last ends by a signal when the file goes. `slot` is which two
/// numbers are its own.
func useGranted(_ kind: String, _ path: String, notes: String, slot: Int) -> Never {
  let shared = open(notes, O_RDWR | O_CLOEXEC)
  guard shared >= 0, let page = mmap(nil, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0),
    page != MAP_FAILED
  else { complain("no notes: \(notes)") }
  let numbers = page.assumingMemoryBound(to: Int64.self) + 2 * slot
  func note(_ start: Int64) {
    numbers[0] = start
    numbers[1] += 1
  }
  while true {
    let file = open(path, (kind == "read" ? O_RDONLY : O_RDWR) | O_CLOEXEC)
    guard file >= 0 else {
      usleep(200)
      continue
    }
    if kind == "map" { useMap(of: file, note) }
    var byte: UInt8 = 0x61
    while true {
      let start = nanoseconds()
      let count = kind == "read" ? pread(file, &byte, 1, 0) : pwrite(file, &byte, 1, 0)
      guard count == 1 else { break }
      note(start)
    }
    close(file)
  }
}

/// Reads and writes in turn, for as long as there is a page.
private func useMap(of file: Int32, _ note: (Int64) -> Void) {
  // A program that ends by it says nothing.
  signal(SIGBUS, SIG_DFL)
  guard let map = mmap(nil, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), map != MAP_FAILED else {
    return
  }
  let byte = map.assumingMemoryBound(to: UInt8.self)
  while true {
    let start = nanoseconds()
    byte.pointee = byte.pointee &+ 1
    note(start)
    // So that the page is asked for again now and then, and written back.
    if start & 63 == 0 { msync(map, 4096, MS_SYNC) }
  }
}

/// Renames a file to another name and back, as fast as it can.
func renameToAndFro(_ path: String, _ other: String) -> Never {
  while true {
    guard rename(path, other) == 0, rename(other, path) == 0 else { complain("rename: \(errno)") }
  }
}

private func nanoseconds() -> Int64 {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

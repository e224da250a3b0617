// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import Glibc

/// What a process uses now.
enum ProcessUsage {
  /// By the kernel's names: VmRSS and Pss, in kB, and Threads, among others.
  static func now(of pid: pid_t) throws(Failure) -> [String: Int] {
    var result: [String: Int] = [:]
    for file in ["status", "smaps_rollup"] {
      guard let bytes = readFile("/proc/\(pid)/\(file)") else { throw Failure("no process \(pid)") }
      for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
        let words = line.split(whereSeparator: { $0 == " " || $0 == "\t" || $0 == ":" })
        guard words.count >= 2, let number = Int(words[1]) else { continue }
        result[String(words[0])] = number
      }
    }
    return result
  }

  /// How many descriptors it has open.
  static func descriptors(of pid: pid_t) -> Int {
    guard let directory = opendir("/proc/\(pid)/fd") else { return 0 }
    defer { closedir(directory) }
    var count = 0
    while readdir(directory) != nil { count += 1 }
    // Without the directory itself and the one above it.
    return max(0, count - 2)
  }
}

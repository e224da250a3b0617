// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import Glibc

/// Memory that is free in this machine, and that the machine really has.
///
/// The host of a virtual machine may take back what is free there, and gives a page back at its first use, ten times as slowly as
/// memory is. Who of several comes first after that pays for all of them; so it is paid before, untimed.
enum FreeMemory {
  /// Uses so much memory for a moment, but never more than half of what is available.
  static func touch(_ bytes: Int) {
    let bytes = min(bytes, available / 2)
    guard bytes > 0 else { return }
    let memory = mmap(nil, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    guard let memory, memory != MAP_FAILED else { return }
    defer { munmap(memory, bytes) }
    for offset in stride(from: 0, to: bytes, by: 4096) {
      memory.storeBytes(of: 1, toByteOffset: offset, as: UInt8.self)
    }
  }

  private static var available: Int {
    let text = String(decoding: readFile("/proc/meminfo") ?? [], as: UTF8.self)
    let line = text.split(separator: "\n").first { $0.hasPrefix("MemAvailable:") }
    let kilobytes = line?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
    return kilobytes * 1024
  }
}

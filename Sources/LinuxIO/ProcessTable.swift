// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc

/// All processes of the machine at one moment, with what each has used.
///
/// One walk of /proc, however many of them somebody asks about. Corresponds to `/proc/PID/stat`.
package struct ProcessTable: Sendable {
  /// A process.
  package struct Entry: Sendable {
    package let pid: Int32
    package let parent: Int32
    /// Of it and of those that it has waited for.
    package let ticks: UInt64
    package let pages: UInt64
    package let threads: UInt64
    /// In ticks since the machine was started; with the number, it tells one process from another.
    package let started: UInt64
    /// Whether nothing but its number is left of it: a zombie.
    package let hasEnded: Bool
  }

  private let entries: [Int32: Entry]
  private let children: [Int32: [Int32]]

  /// Those that the kernel shows us; none where /proc can't be read.
  package init() {
    var entries: [Int32: Entry] = [:]
    var children: [Int32: [Int32]] = [:]
    for pid in ProcessID.numbers(in: "/proc") {
      guard let entry = Self.entry(pid) else { continue }
      entries[pid] = entry
      children[entry.parent, default: []].append(pid)
    }
    self.entries = entries
    self.children = children
  }

  /// The numbers of all of them.
  package var numbers: [Int32] { entries.keys.inOrder(by: <) }

  package subscript(pid: Int32) -> Entry? { entries[pid] }

  package func children(of pid: Int32) -> [Int32] { children[pid] ?? [] }

  /// All that a process has started, and what those have; not the process itself.
  package func descendants(of pid: Int32) -> [Entry] {
    var found: [Entry] = []
    var next = children(of: pid)
    // A number that was used again during the walk could make a circle of two families.
    while let child = next.popLast(), found.count < entries.count {
      if let entry = entries[child] { found.append(entry) }
      next += children(of: child)
    }
    return found
  }

  /// One process; nil if there is none that can be looked at.
  static func entry(_ pid: Int32) -> Entry? {
    FD.text(of: "/proc/\(pid)/stat", limit: 4096).flatMap { Entry(pid, $0) }
  }

  /// How many ticks are a second.
  package static let ticksPerSecond = UInt64(max(1, sysconf(Int32(_SC_CLK_TCK))))
  package static let pageSize = UInt64(max(1, sysconf(Int32(_SC_PAGESIZE))))
}

extension ProcessTable.Entry {
  /// Reads a line of the kernel's; the name in it is in parentheses and may contain anything, those included.
  package init?(_ pid: Int32, _ line: String) {
    let bytes = Array(line.utf8)
    guard let end = bytes.lastIndex(of: UInt8(ascii: ")")) else { return nil }
    let words = bytes[(end + 1)...].split(separator: UInt8(ascii: " "))
    func number(_ index: Int) -> UInt64 {
      // proc(5) counts from 1, and the name is the second.
      let index = index - 3
      guard words.indices.contains(index) else { return 0 }
      return UInt64(String(decoding: words[index], as: UTF8.self)) ?? 0
    }
    guard words.count > 21, let parent = Int32(exactly: number(4)) else { return nil }
    self.pid = pid
    self.parent = parent
    ticks = [14, 15, 16, 17].reduce(0) { $0 &+ number($1) }
    threads = number(20)
    started = number(22)
    pages = number(24)
    hasEnded = [UInt8(ascii: "Z"), UInt8(ascii: "X")].contains(words[0].first)
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Synchronization

/// How many requests of each kind a thread, or a pool of them, has served.
final class RequestCounts: Sendable {
  /// More than the kernel's numbers.
  private static let kinds = 64
  // Unchecked: nobody gets at the pointer itself.
  private nonisolated(unsafe) let counts: UnsafeMutablePointer<Atomic<UInt64>>

  init() {
    counts = .allocate(capacity: Self.kinds)
    for kind in 0..<Self.kinds { (counts + kind).initialize(to: Atomic(0)) }
  }

  deinit {
    counts.deinitialize(count: Self.kinds)
    counts.deallocate()
  }

  /// Counts a request of a kind, by the kernel's number; 0 takes all those that are not known.
  @inline(__always)
  func add(_ opcode: UInt32) {
    let kind = opcode < Self.kinds ? Int(opcode) : 0
    counts[kind].wrappingAdd(1, ordering: .relaxed)
  }

  func count(of kind: Int) -> UInt64 { counts[kind].load(ordering: .relaxed) }

  static func total(_ all: [RequestCounts]) -> UInt64 {
    all.reduce(0) { total, each in (0..<kinds).reduce(total) { $0 &+ each.count(of: $1) } }
  }

  /// The sums of those that are not 0, by the kernel's names (linux/fuse.h).
  static func byName(_ all: [RequestCounts]) -> [String: UInt64] {
    var found: [String: UInt64] = [:]
    for kind in 0..<kinds {
      let sum = all.reduce(UInt64(0)) { $0 &+ $1.count(of: kind) }
      if sum > 0 { found[name(of: UInt32(kind)), default: 0] &+= sum }
    }
    return found
  }

  /// The kernel's name of a kind.
  static func name(of opcode: UInt32) -> String { names[opcode] ?? "OTHER" }

  private static let names: [UInt32: String] = [
    1: "LOOKUP", 2: "FORGET", 3: "GETATTR", 4: "SETATTR", 5: "READLINK", 6: "SYMLINK", 8: "MKNOD", 9: "MKDIR",
    10: "UNLINK", 11: "RMDIR", 12: "RENAME", 13: "LINK", 14: "OPEN", 15: "READ", 16: "WRITE", 17: "STATFS",
    18: "RELEASE", 20: "FSYNC", 21: "SETXATTR", 22: "GETXATTR", 23: "LISTXATTR", 24: "REMOVEXATTR",
    25: "FLUSH", 26: "INIT", 27: "OPENDIR", 28: "READDIR", 29: "RELEASEDIR", 30: "FSYNCDIR", 31: "GETLK",
    32: "SETLK", 33: "SETLKW", 34: "ACCESS", 35: "CREATE", 36: "INTERRUPT", 37: "BMAP", 38: "DESTROY",
    39: "IOCTL", 40: "POLL", 41: "NOTIFY_REPLY", 42: "BATCH_FORGET", 43: "FALLOCATE", 44: "READDIRPLUS",
    45: "RENAME2", 46: "LSEEK", 47: "COPY_FILE_RANGE", 48: "SETUPMAPPING", 49: "REMOVEMAPPING", 50: "SYNCFS",
    51: "TMPFILE", 52: "STATX", 53: "COPY_FILE_RANGE_64",
  ]
}

/// How many requests one session has sent, whatever they are; a worker's latest few may not be in it yet.
///
/// What the kernel has answered from its caches can't be counted here: it does not say how often that was.
package final class RequestCounter: Sendable {
  private let count = Atomic<UInt64>(0)

  package init() {}

  func add(_ requests: Int) {
    if requests > 0 { count.wrappingAdd(UInt64(requests), ordering: .relaxed) }
  }

  package var total: UInt64 { count.load(ordering: .relaxed) }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import CLinux
internal import Glibc
internal import LinuxIO

/// What is known of an object that a seal speaks of, beside its node.
struct SealedNode {
  let seal: ServedSeal
  let position: SealedPosition
  /// What the last look at its bytes has said, and what the file was like then.
  var verdict: (isGood: Bool, stamp: FileStamp)?

  init(_ seal: ServedSeal, _ position: SealedPosition) {
    self.seal = seal
    self.position = position
  }
}

/// What changes with a file's bytes, whoever changes them.
struct FileStamp: Equatable {
  private let changed: Int64
  private let modified: Int64
  private let size: Int64

  init(_ status: FileStatus) {
    changed = Self.nanoseconds(status.st_ctim)
    modified = Self.nanoseconds(status.st_mtim)
    size = Int64(status.st_size)
  }

  /// Whether a change from now on would be told from this one.
  ///
  /// Times of files are as coarse as the backing filesystem keeps them; so what has only just changed may change again unseen.
  var isSettled: Bool {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return Self.nanoseconds(now) &- changed > 1_000_000_000
  }

  private static func nanoseconds(_ time: timespec) -> Int64 {
    Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
  }
}

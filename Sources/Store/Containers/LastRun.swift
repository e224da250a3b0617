// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

// When an app was last begun or ended for a user: with its container, so that it is moved, saved and lost
// together with what it is about. It is written without forcing it to disk: a launch waits for no disk.

extension Store {
  /// When the app of a container was last begun or ended, in seconds since 1970; nil if that is not known.
  package func lastRun(of container: String) -> Int64? {
    guard let directory = try? tree.openDirectory(at: container) else { return nil }
    return Metadata(isSystem: description.mode == .system).lastRun(of: directory.fd)
  }

  /// Notes that an app runs, or has run until now; `container` is below the root of the tree.
  package func noteRun(of container: String, at seconds: Int64) {
    let metadata = Metadata(isSystem: description.mode == .system)
    guard let directory = try? tree.openDirectory(at: container) else { return }
    try? metadata.setLastRun(seconds, of: directory.fd)
  }
}

extension Metadata {
  private var lastRunName: StaticString { isSystem ? "trusted.insula.ran" : "user.insula.ran" }

  /// In seconds since 1970; nil where nothing sensible is noted.
  func lastRun(of container: FD) -> Int64? {
    let seconds = try? read(lastRunName, of: container) { bytes in
      bytes?.count == 8 ? bytes?.reduce(UInt64(0)) { $0 << 8 | UInt64($1) } : nil
    }
    return seconds.flatMap { $0 }.flatMap { Int64(exactly: $0) }
  }

  fileprivate func setLastRun(_ seconds: Int64, of container: FD) throws(Errno) {
    let word = UInt64(bitPattern: seconds)
    try set(lastRunName, to: (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * $0)) }, on: container)
  }
}

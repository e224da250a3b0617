// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Synchronization

/// Standard output, which remembers that it failed: whoever has redirected it to a full disk must learn that
/// something is missing there.
final class StandardOutput: Sendable {
  private let error = Mutex<Errno?>(nil)

  /// The first failure.
  var failure: Errno? { error.withLock { $0 } }

  func write(_ bytes: [UInt8]) {
    do throws(Errno) {
      try FD(1).writeAll(bytes)
    } catch {
      let new = error
      self.error.withLock { if $0 == nil { $0 = new } }
    }
  }
}

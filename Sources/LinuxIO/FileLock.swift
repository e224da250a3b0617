// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc

extension FD {
  /// Takes the whole-file lock without waiting; false if someone else has it. Corresponds to `flock(2)`.
  package func tryLock() throws(Errno) -> Bool {
    do {
      try retrying { flock(raw, LOCK_EX | LOCK_NB) }
      return true
    } catch {
      guard error == .EAGAIN else { throw error }
      return false
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// Who may look for names in a directory, and who may change them, through whichever view.
///
/// A kernel lets one call at a time change the names in a directory, and none look for one meanwhile; but it
/// knows nothing of other kernels. So:
///
///  1. Who takes a name away judges what it stands for while nobody else changes it: it could be someone
///     else's object by then.
///  2. What is found or made under a name keeps that name until its view knows it, and so is told of what
///     becomes of it.
///
/// Nobody waits for a kernel meanwhile, nor comes here again.
final class NameLocks: Sendable {
  /// Each for many directories.
  private let locks = (0..<256).map { _ in ReadWriteLock() }

  /// Lets `body` look for names in a directory; nobody changes any meanwhile.
  func unchanged<Result: ~Copyable>(
    in directory: ObjectNumber, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    try lock(of: directory).reading(body)
  }

  /// Lets `body` look for names in a directory and change them; nobody else does either meanwhile.
  func alone<Result: ~Copyable>(
    in directory: ObjectNumber, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    try lock(of: directory).writing(body)
  }

  /// The same in two directories.
  func alone<Result: ~Copyable>(
    in one: ObjectNumber, _ other: ObjectNumber, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    let (first, second) = (index(of: one), index(of: other))
    // In one order, whoever comes; and two directories may have one lock.
    return try locks[min(first, second)].writing { () throws(Errno) in
      first == second ? try body() : try locks[max(first, second)].writing(body)
    }
  }

  private func lock(of directory: ObjectNumber) -> ReadWriteLock { locks[index(of: directory)] }

  private func index(of directory: ObjectNumber) -> Int {
    Int((directory.inode &* 0x9e37_79b9_7f4a_7c15) >> 56) % locks.count
  }
}

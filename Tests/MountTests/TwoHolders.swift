// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport

/// A store of two users who may hold locks, which its daemon ends.
struct TwoHolders {
  let run: RunFixture
  let other: TemporaryAccount

  init() throws {
    let other = try TemporaryAccount()
    run = try RunFixture(before: { LockHolding.ended([$0, other.account, RunFixture.root]) })
    self.other = other
    try run.succeed("user", "add", other.account.name, "--store", run.mounted.store)
  }

  /// Whether the kernel passes anything through here.
  func passesThrough() throws -> Bool {
    let passes = try run.mounted.flag("passthrough")
    if !passes { print("skipped: the kernel passes nothing through here, so no user holds such a lock") }
    return passes
  }
}

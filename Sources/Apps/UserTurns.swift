// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// One at a time of each user: what waits for a filesystem of a user's then holds up that user alone.
package final class UserTurns: Sendable {
  private let busy = Condition<Set<UInt32>>([])

  package init() {}

  package func with<Result, Failure: Error>(
    _ user: UInt32, _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    busy.wait(until: { !$0.contains(user) }) { _ = $0.insert(user) }
    defer { busy.change { _ = $0.remove(user) } }
    return try body()
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// One at a time for each key: what waits for the filesystem of one then holds up nobody else.
package final class KeyedTurns<Key: Hashable & Sendable>: Sendable {
  private let busy = Condition<Set<Key>>([])

  package init() {}

  package func with<Result, Failure: Error>(
    _ key: Key, _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    busy.wait(until: { !$0.contains(key) }) { _ = $0.insert(key) }
    defer { busy.change { _ = $0.remove(key) } }
    return try body()
  }
}

/// One at a time of each user.
package typealias UserTurns = KeyedTurns<UInt32>

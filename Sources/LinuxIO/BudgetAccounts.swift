// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Synchronization

/// What is counted: a user, or an app's view.
struct Party {
  let raw: UInt64
  static func user(_ user: UInt32) -> Party { Party(raw: UInt64(user)) }
  static func view(_ view: UInt32) -> Party { Party(raw: 1 << 32 | UInt64(view)) }
}

/// Some of the accounts.
final class BudgetAccounts: Sendable {
  private let table = Mutex(AccountTable())

  func count(_ kind: Budget.Kind, _ party: Party) -> Int { table.withLock { $0.count(kind, party) } }

  /// False if it would be more than the limit; then nothing is counted.
  @discardableResult
  func add(_ count: Int, _ kind: Budget.Kind, _ party: Party, upTo limit: Int = .max) -> Bool {
    table.withLock { $0.add(count, kind, party, upTo: limit) }
  }
}

/// Counts by party in open addressing.
///
/// Each opening and each closing of a file asks here, and to hash a dictionary's key takes longer than all of
/// this. An account that has nothing goes when the table is laid out again.
private struct AccountTable {
  private static let kinds = Budget.Kind.allCases.count
  private static let least = 16

  /// One more than the party; 0 where there is none.
  ///
  /// At most half are in use.
  private var keys = [UInt64](repeating: 0, count: least)
  /// One for each kind, for each key.
  private var counts = [Int](repeating: 0, count: least * kinds)
  private var used = 0

  func count(_ kind: Budget.Kind, _ party: Party) -> Int {
    let slot = slot(of: party.raw + 1)
    return keys[slot] == 0 ? 0 : counts[slot * Self.kinds + kind.rawValue]
  }

  mutating func add(_ count: Int, _ kind: Budget.Kind, _ party: Party, upTo limit: Int) -> Bool {
    let key = party.raw + 1
    var slot = slot(of: key)
    if keys[slot] == 0 {
      if (used + 1) * 2 > keys.count {
        layOut()
        slot = self.slot(of: key)
      }
      keys[slot] = key
      used += 1
    }
    let index = slot * Self.kinds + kind.rawValue
    let sum = counts[index] + count
    guard sum <= limit || count <= 0 else { return false }
    counts[index] = sum
    return true
  }

  /// Where the key is, or would be.
  private func slot(of key: UInt64) -> Int {
    let mask = keys.count - 1
    // The golden ratio's bits: neighbours, as users mostly are, come to lie far apart.
    var slot = Int(truncatingIfNeeded: (key &* 0x9E37_79B9_7F4A_7C15) >> 32) & mask
    while keys[slot] != key, keys[slot] != 0 { slot = (slot + 1) & mask }
    return slot
  }

  /// Leaves out the accounts that have nothing, and makes room for as many again as there are.
  private mutating func layOut() {
    let old = self
    let live = old.keys.indices.filter { slot in
      old.keys[slot] != 0 && old.counts[slot * Self.kinds..<(slot + 1) * Self.kinds].contains { $0 != 0 }
    }
    var capacity = Self.least
    while capacity < live.count * 4 { capacity *= 2 }
    keys = [UInt64](repeating: 0, count: capacity)
    counts = [Int](repeating: 0, count: capacity * Self.kinds)
    used = live.count
    for slot in live {
      let place = self.slot(of: old.keys[slot])
      keys[place] = old.keys[slot]
      for kind in 0..<Self.kinds { counts[place * Self.kinds + kind] = old.counts[slot * Self.kinds + kind] }
    }
  }
}

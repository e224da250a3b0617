// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// How far some locks reach: the last byte that anyone has locked, and the last that anybody else has.
struct LockReach {
  private var first: (last: Int64, holder: LockHolder)?
  private var second: (last: Int64, holder: LockHolder)?

  /// The last byte of anyone but `holder`, or -1.
  func besides(_ holder: LockHolder) -> Int64 {
    guard let first else { return -1 }
    return first.holder == holder ? second?.last ?? -1 : first.last
  }

  mutating func add(_ last: Int64, _ holder: LockHolder) {
    guard let known = first else {
      first = (last, holder)
      return
    }
    if known.holder == holder {
      first = (max(known.last, last), holder)
    } else if last > known.last {
      second = known
      first = (last, holder)
    } else if last > second?.last ?? -1 {
      second = (last, holder)
    }
  }

  mutating func add(_ other: LockReach) {
    if let first = other.first { add(first.last, first.holder) }
    if let second = other.second { add(second.last, second.holder) }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// How something that is limited is shared, so that nobody takes what others need.
package enum FairShare {
  /// The share of each: what they need, if that is no more than an equal part; what they leave goes to the
  /// others.
  package static func shares<Key: Hashable>(of total: Int, among needs: [Key: Int]) -> [Key: Int] {
    var (rest, left) = (max(0, total), needs.count)
    var shares: [Key: Int] = [:]
    for (key, need) in needs.sorted(by: { $0.value < $1.value }) {
      let share = min(max(0, need), rest / left)
      shares[key] = share
      rest -= share
      left -= 1
    }
    return shares
  }
}

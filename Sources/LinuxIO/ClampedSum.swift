// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension Int64 {
  /// The sum of sizes that others may have made up: the largest number there is, where it would be larger.
  package func adding(clamped other: Int64) -> Int64 {
    let (sum, isOver) = addingReportingOverflow(other)
    guard isOver else { return sum }
    return other < 0 ? .min : .max
  }
}

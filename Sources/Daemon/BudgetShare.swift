// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// One thing that counts against a user's budget for as long as this is kept.
final class BudgetShare: Sendable {
  private let kind: Budget.Kind
  private let payer: Payer
  private let budget: Budget

  /// Throws the errno of that kind when the user is over budget.
  init(_ kind: Budget.Kind, of payer: Payer, in budget: Budget) throws(Errno) {
    try budget.take(kind, by: payer)
    self.kind = kind
    self.payer = payer
    self.budget = budget
  }

  deinit { budget.give(kind, by: payer) }
}

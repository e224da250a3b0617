// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// By whom there is something for a user's number, for which an account is about to get a home.
package enum NumberHolder: Equatable, Sendable {
  /// By the account: it has used the store without a home.
  case account
  /// By somebody who had the number before.
  case former
  /// Nobody knows: nothing is noted.
  case unknown

  /// `name` is that of the account; `noted` is what the account of the number was called when the first
  /// decision was made, if that is known.
  ///
  /// A number without a home that `hadHome` was of somebody whose home was removed. What was decided by an
  /// account of which nothing is known is a former one's: at worst somebody is asked once more.
  package init(of name: String, noted: String?, hadHome: Bool, hasDecisions: Bool) {
    if hadHome {
      self = .former
    } else if let noted {
      self = noted.hasSameBytes(as: name) ? .account : .former
    } else {
      self = hasDecisions ? .former : .unknown
    }
  }
}

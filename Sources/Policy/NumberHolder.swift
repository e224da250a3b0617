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

  /// `name` is that of the account.
  ///
  /// `noted` is what the account of the number was called when the first decision was made, if that is known.
  /// `isNotedThere` says whether an account is called that and has the
  /// number: several accounts can have one.
  package init(of name: String, noted: String?, isNotedThere: Bool, home: FormerHome) {
    switch home {
    case .accounts: self = .account
    case .gone: self = .former
    case .never:
      if let noted {
        self = isNotedThere || noted.hasSameBytes(as: name) ? .account : .former
      } else {
        self = .unknown
      }
    }
  }
}

/// What is known of the home that a number had which has none now.
package enum FormerHome: Equatable, Sendable {
  /// It never had one.
  case never
  /// It is the account's own by number and name: it was ejected, or it is about to be adopted.
  case accounts
  /// It went without a word, or has another name: it was somebody's who had the number before.
  case gone
}

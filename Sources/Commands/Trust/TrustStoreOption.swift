// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension CommandDescription {
  /// Whose roots are meant: a store's, or without it the user's own.
  static let trustStore = Option(
    name: "store", value: "STORE",
    help: "use the roots that this store trusts for installing apps instead of your own",
    kind: .directory)
}

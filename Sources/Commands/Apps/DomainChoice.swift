// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps

extension AppDomain {
  /// `--user` of the verbs that put an app somewhere.
  static let homeOption = CommandDescription.Option(
    name: "user", short: "u", value: "NAME",
    help: "only for this user, in the user's home (default: for everyone)", kind: .account)

  /// Of a home that was named, or of everyone.
  init(home: String?) { self = home.map(AppDomain.user) ?? .everyone }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import PropertyLists

/// `insula defaults delete`.
struct DefaultsDeleteCommand: Command {
  static let worksInApps = true
  static let description = CommandDescription(
    name: "defaults delete", summary: "Deletes a preference, or all preferences of a domain.",
    arguments: [
      .init(
        name: "DOMAIN", help: CommandDescription.domainArgument.help, isRequired: true, kind: .app),
      .init(name: "KEY", help: "one preference of the domain"),
    ],
    options: [AppsAccess.userOption, AppsAccess.storeOption],
    isArgument: { PreferenceDomain.globalWords.contains($0) },
    examples: ["insula defaults delete com.example.editor FontSize"],
    becomesUser: true)

  private let domain: PreferenceDomain
  private let key: String?
  private let user: String?
  private let store: String?

  init(_ arguments: ParsedArguments) throws(UsageError) {
    domain = try Self.description.domain(arguments.argument(0)) ?? .global
    key = arguments.argument(1)
    user = arguments.value("user")
    store = arguments.value("store")
  }

  func run(in context: Context) throws -> ExitCode {
    let words = ["--", domain.name] + [key].compactMap { $0 }
    if let done = try DefaultsActing.perform("delete", words, user, store, context) { return done }
    let uid = try AppsAccess.user(user, context)
    let found = try Preferences.find(domain, of: uid, store: store, context)
    guard let preferences = found else { throw domain.isMissing }
    try preferences.change(domain) { list in
      guard var list else { throw domain.isMissing }
      guard let key else { return nil }
      guard list[key] != nil else { throw domain.lacks(key) }
      list[key] = nil
      return list
    }
    return .ok
  }
}

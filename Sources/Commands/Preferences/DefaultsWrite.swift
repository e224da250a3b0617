// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import PropertyLists

/// `insula defaults write`.
struct DefaultsWriteCommand: Command {
  static let worksInApps = true
  static let description = CommandDescription(
    name: "defaults write", summary: "Sets a preference, as defaults does on macOS.",
    arguments: [
      .init(
        name: "DOMAIN", help: CommandDescription.domainArgument.help, isRequired: true, kind: .app),
      .init(name: "KEY", help: "which preference", isRequired: true),
      .init(
        name: "VALUE", help: "a string, or a type and a value of that type", isRequired: true,
        isRepeated: true),
    ],
    options: [AppsAccess.userOption, AppsAccess.storeOption],
    isArgument: {
      PreferenceDomain.globalWords.contains($0) || PreferenceValue.words.contains($0) || Double($0) != nil
    },
    details: [
      """
      The types are -string, -int, -float, -bool, -date and -data, which is written as hexadecimal digits;
      -array VALUE... and -dict KEY VALUE..., whose values are strings or have types of their own; and
      -array-add and -dict-add, which keep what is there. Behind '--', a word with a dash is a string.
      A list that can't be read is never overwritten.
      """
    ],
    examples: [
      "insula defaults write com.example.editor FontSize -int 12",
      "insula defaults write -g AppleLanguages -array de en",
    ],
    becomesUser: true)

  private let domain: PreferenceDomain
  private let key: String
  private let change: PreferenceValue.Change
  private let words: [String]
  private let user: String?
  private let store: String?

  init(_ arguments: ParsedArguments) throws(UsageError) {
    words = arguments.positional
    domain = try Self.description.domain(words[0]) ?? .global
    key = words[1]
    do throws(PreferenceValue.Problem) {
      change = try PreferenceValue.change(Array(words.dropFirst(2)))
    } catch {
      throw Self.description.error(error.message)
    }
    user = arguments.value("user")
    store = arguments.value("store")
  }

  func run(in context: Context) throws -> ExitCode {
    if let done = try DefaultsActing.perform("write", ["--"] + words, user, store, context) { return done }
    let uid = try AppsAccess.user(user, context)
    let found = try Preferences.find(domain, of: uid, store: store, writing: true, context)
    guard let preferences = found else { throw domain.isMissing }
    try preferences.change(domain) { old in
      var list = old ?? PropertyList.Dictionary()
      list[key] = try changed(list[key])
      return list
    }
    return .ok
  }

  private func changed(_ old: PropertyList?) throws(CommandFailure) -> PropertyList {
    switch change {
    case .replace(let value): return value
    case .append(let values):
      guard let before = old.map(\.array) ?? [] else { throw wrongType("an array") }
      return .array(before + values)
    case .merge(let entries):
      guard var dictionary = old.map(\.dictionary) ?? PropertyList.Dictionary() else {
        throw wrongType("a dictionary")
      }
      for (key, value) in entries { dictionary[key] = value }
      return .dictionary(dictionary)
    }
  }

  private func wrongType(_ type: String) -> CommandFailure {
    CommandFailure(.failed, "\(domain.name) has a preference '\(key)' that is not \(type)")
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import JSON
internal import LinuxIO
internal import Policy
internal import PropertyLists

/// `insula defaults read`.
struct DefaultsReadCommand: Command {
  static let worksInApps = true
  static let description = CommandDescription(
    name: "defaults read", summary: "Shows preferences, as defaults does on macOS.",
    arguments: [CommandDescription.domainArgument, .init(name: "KEY", help: "one preference of the domain")],
    options: [AppsAccess.userOption, AppsAccess.storeOption, CommandDescription.json],
    isArgument: { PreferenceDomain.globalWords.contains($0) },
    details: [
      """
      Preferences are property lists in Library/Preferences: of your home, or of the container of an app, for
      a domain that has the identifier of an app. Without DOMAIN, all domains of your home are shown. Inside
      an app, all domains are in its container.
      """
    ],
    examples: ["insula defaults read com.example.editor", "insula defaults read -g AppleLanguages"],
    storeUse: .looks, becomesUser: true)

  private let domain: PreferenceDomain?
  private let key: String?
  private let user: String?
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    domain = try Self.description.domain(arguments.argument(0))
    key = arguments.argument(1)
    user = arguments.value("user")
    store = arguments.value("store")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let words = (json ? ["--json"] : []) + ["--"] + [domain?.name, key].compactMap { $0 }
    if let done = try DefaultsActing.perform("read", words, user, store, context) { return done }
    let uid = try AppsAccess.user(user, context)
    let preferences = try Preferences.find(domain, of: uid, store: store, context)
    guard let domain else {
      var all = PropertyList.Dictionary()
      var exitCode = ExitCode.ok
      guard let preferences else {
        try show(.dictionary(all), context)
        return .ok
      }
      for domain in try preferences.domains() {
        do throws(CommandFailure) {
          all[domain.name] = try preferences.read(domain).map { .dictionary($0) }
        } catch {
          context.console.note(error)
          exitCode = .failed
        }
      }
      try show(.dictionary(all), context)
      return exitCode
    }
    guard let preferences, let list = try preferences.read(domain) else { throw domain.isMissing }
    guard let key else {
      try show(.dictionary(list), context)
      return .ok
    }
    guard let value = list[key] else { throw domain.lacks(key) }
    try show(value, context)
    return .ok
  }

  private func show(_ value: PropertyList, _ context: Context) throws(CommandFailure) {
    // Each line is indented; JSON takes less.
    guard !value.exceeds(Preferences.writtenLimit, indent: 4) else {
      throw CommandFailure(.failed, "the preferences can't be shown: \(Preferences.isMuch)")
    }
    if json {
      context.console.print(json: JSONValue(value))
    } else {
      context.console.print(text: value.described)
    }
  }
}

extension PreferenceDomain {
  var isMissing: CommandFailure {
    CommandFailure(
      .failed, "there are no preferences of \(name); 'insula defaults domains' lists the domains")
  }

  func lacks(_ key: String) -> CommandFailure {
    CommandFailure(.failed, "\(name) has no preference '\(key)'; 'insula defaults read \(name)' shows all")
  }
}

/// Commands about preferences that root gives in somebody's name.
enum DefaultsActing {
  static func perform(
    _ verb: String, _ words: [String], _ user: String?, _ store: String?, _ context: Context
  ) throws -> ExitCode? {
    try ActingCommand.onMount(of: store, for: user, context) { ["defaults", verb, "--store", $0] + words }
  }
}

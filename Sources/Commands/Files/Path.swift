// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO
internal import Policy

/// `insula path`.
struct PathCommand: Command {
  static let worksInApps = true
  static let description = CommandDescription(
    name: "path", summary: "Prints the path of an app's directory, or of a domain's standard directory.",
    arguments: [
      .init(
        name: "ID|DIRECTORY", help: "an app's identifier or name, or a standard directory",
        kind: .either(.word(SearchDirectory.all.map(\.name)), .app)),
      .init(name: "PLACE", help: "which directory of the app", kind: .word(AppPlace.completions)),
    ],
    options: [
      .init(
        name: "domain", value: "DOMAINS",
        help:
          "user, local, network, system, several separated by commas, or all (default: user if it has one)",
        kind: .list(Domain.allCases.map(\.rawValue))),
      .init(
        name: "livecode", value: "WORD",
        help: "the place of the app ID that LiveCode calls so; inside an app, its own",
        kind: .word(liveCodeWords)),
      AppsAccess.userOption, AppsAccess.storeOption, CommandDescription.json,
    ],
    details: [
      "PLACE is one of\n" + wrapped(AppPlace.words),
      """
      A container is created when its path is asked for. An app has the containers of groups and iCloud that
      its entitlements list; 'icloud' stands for the first of iCloud.
      """,
      "DIRECTORY is one of these names, as in NSSearchPath of macOS:\n"
        + wrapped(SearchDirectory.all.map(\.name)),
      """
      Its paths are printed one per line, in the order user, local, network, system, whether the directory
      exists or not. If local and system are both asked for and have the same path, it is printed once.
      """,
    ],
    examples: [
      "insula path com.example.editor documents", "cd \"$(insula path com.example.editor home)\"",
      "insula path com.example.editor group:group.com.example", "insula path caches --domain all",
    ])

  private static func wrapped(_ words: [String]) -> String {
    var lines = [""]
    for word in words {
      if let last = lines.last, last.count + word.count > 100 { lines.append("") }
      lines[lines.count - 1] += (lines.last?.isEmpty ?? true ? "  " : ", ") + word
    }
    return lines.joined(separator: ",\n")
  }

  private static let liveCodeWords = AppPlace.liveCode.map(\.word) + [AppPlace.liveCodeDesktop]

  private static var places: String { AppPlace.words.joined(separator: ", ") }

  private enum Question {
    case app(AppReference, AppPlace)
    case ownApp(AppPlace)
    case directory(SearchDirectory, Set<Domain>)
  }

  private let question: Question
  private let user: String?
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    user = arguments.value("user")
    store = arguments.value("store")
    json = arguments.has("json")
    let domains = arguments.value("domain")
    if let word = arguments.value("livecode") {
      question = try Self.question(liveCode: word, arguments)
      return
    }
    guard arguments.argument(0) != nil else { throw Self.description.error("ID|DIRECTORY is missing") }
    if let word = arguments.argument(1) {
      guard let place = AppPlace(word) else {
        let suggestion = Suggestion.text(for: word, among: AppPlace.completions)
        throw Self.description.error("unknown place '\(word)'\(suggestion); known are \(Self.places)")
      }
      if domains != nil {
        throw Self.description.error("'--domain' applies to standard directories, not to apps")
      }
      question = .app(try Self.description.app(arguments.argument(0)), place)
      return
    }
    let name = arguments.argument(0) ?? ""
    guard let directory = SearchDirectory.named(name) else {
      throw Self.description.error(
        "there is no standard directory '\(name)'"
          + Suggestion.text(for: name, among: SearchDirectory.all.map(\.name))
          + "; for an app, give a PLACE too: \(Self.places)")
    }
    question = .directory(directory, try Self.domains(domains, directory))
  }

  private static func question(
    liveCode word: String, _ arguments: ParsedArguments
  ) throws(UsageError) -> Question {
    guard arguments.argument(1) == nil, arguments.value("domain") == nil else {
      throw description.error("'--livecode' stands for PLACE and '--domain'; leave those out")
    }
    if word == AppPlace.liveCodeDesktop, let desktop = SearchDirectory.named("desktop") {
      return .directory(desktop, [.user])
    }
    guard let place = AppPlace.liveCode.first(where: { $0.word == word })?.place else {
      throw description.error(
        "LiveCode has no place '\(word)'\(Suggestion.text(for: word, among: liveCodeWords)); known are "
          + liveCodeWords.joined(separator: ", "))
    }
    guard let app = arguments.argument(0) else { return .ownApp(place) }
    return .app(try description.app(app), place)
  }

  private static func domains(
    _ text: String?, _ directory: SearchDirectory
  ) throws(UsageError) -> Set<Domain> {
    guard let text else {
      return directory.possibleDomains.contains(.user) ? [.user] : Set(directory.possibleDomains)
    }
    if text == "all" { return Set(Domain.allCases) }
    var domains: Set<Domain> = []
    for word in text.parts(between: ",", keepingEmpty: true) {
      guard let domain = Domain(rawValue: String(word)) else {
        let suggestion = Suggestion.text(for: String(word), among: Domain.allCases.map(\.rawValue) + ["all"])
        throw description.error(
          "unknown domain '\(word)'\(suggestion); known are user, local, network, system, and all alone")
      }
      domains.insert(domain)
    }
    return domains
  }

  /// One place, for programs.
  private struct Answer: Encodable {
    var domain: String?
    var identifier: String?
    var place: String
    let path: String
  }

  private func identifier(_ access: any StoreAccess, _ uid: UInt32?) throws -> AppIdentifier {
    if case .app(let app, _) = question { return try access.identifier(of: app, for: uid) }
    guard let own = (access as? AppAccess)?.own.identifier, let identifier = AppIdentifier(own) else {
      throw Self.description.error("name the app whose place is meant: insula path ID --livecode WORD")
    }
    return identifier
  }

  func run(in context: Context) throws -> ExitCode {
    let uid = try AppsAccess.user(user, context)
    switch question {
    case .app(_, let place), .ownApp(let place):
      let access = try AppsAccess.find(store, writing: place != .bundle, context)
      let identifier = try identifier(access, uid)
      let path = "\(access.root)/\(try access.path(of: place, identifier, for: uid))"
      if json {
        context.console.print(json: Answer(identifier: identifier.text, place: place.word, path: path))
      } else {
        context.console.print(path: path)
      }
    case .directory(let directory, let domains):
      let access = try AppsAccess.find(store, context)
      // Whose home is not there has none of the paths in it either.
      let home = domains.contains(.user) ? try access.home(of: uid ?? context.uid) : nil
      let places = directory.places(in: domains, home: home)
      if json {
        context.console.print(
          json: places.map {
            Answer(domain: $0.domain.rawValue, place: directory.name, path: "\(access.root)/\($0.path)")
          })
      } else {
        for place in places { context.console.print(path: "\(access.root)/\(place.path)") }
      }
    }
    return .ok
  }
}

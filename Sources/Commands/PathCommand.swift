// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// `insula path`.
struct PathCommand: Command {
  static let description = CommandDescription(
    name: "path", summary: "Prints where an app has its things, or where a domain has a standard directory.",
    arguments: [
      .init(name: "ID|DIRECTORY", help: "an app's identifier, or a standard directory", isRequired: true),
      .init(name: "PLACE", help: "which of the app's places", kind: .word(AppPlace.words)),
    ],
    options: [
      .init(
        name: "domain", value: "DOMAINS",
        help: "user, local, network, system, several with commas, or all (default: user if it has one)"),
      AppsAccess.userOption, AppsAccess.storeOption, CommandDescription.json,
    ],
    details: [
      "PLACE is\n" + wrapped(AppPlace.words) + "\n"
        + "Containers are made when they are asked for. "
        + "Of groups and iCloud an app has what it is entitled to;\n"
        + "'icloud' alone is the first one.",
      "DIRECTORY is as in macOS's NSSearchPath:\n"
        + wrapped(SearchDirectory.all.map(\.name)) + "\n"
        + "Its paths are printed one to a line, user's, local, "
        + "network's and system's, whether anything is there\n"
        + "or not. Where local and system are both asked for "
        + "and the system's is the same place, it is left out.",
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

  private enum Question {
    case app(AppIdentifier, AppPlace)
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
    if let word = arguments.argument(1) {
      guard let place = AppPlace(word) else {
        throw Self.description.error(
          "an app has no place '\(word)'; there are \(AppPlace.words.joined(separator: ", "))")
      }
      if domains != nil {
        throw Self.description.error("'--domain' is for standard directories, not for apps")
      }
      question = .app(try Self.description.identifier(arguments.argument(0)), place)
      return
    }
    let name = arguments.argument(0) ?? ""
    guard let directory = SearchDirectory.named(name) else {
      throw Self.description.error(
        "there is no standard directory '\(name)'; for an app, say which place of it too")
    }
    question = .directory(directory, try Self.domains(domains, directory))
  }

  private static func domains(
    _ text: String?, _ directory: SearchDirectory
  ) throws(UsageError) -> Set<Domain> {
    guard let text else {
      return directory.possibleDomains.contains(.user) ? [.user] : Set(directory.possibleDomains)
    }
    if text == "all" { return Set(Domain.allCases) }
    var domains: Set<Domain> = []
    for word in text.split(separator: ",", omittingEmptySubsequences: false) {
      guard let domain = Domain(rawValue: String(word)) else {
        throw description.error("there is no domain '\(word)'; there are user, local, network, system")
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

  func run(in context: Context) throws -> ExitCode {
    let uid = try AppsAccess.user(user, context)
    switch question {
    case .app(let identifier, let place):
      let access = try AppsAccess.find(store, writing: place != .bundle, context)
      let path = "\(access.root)/\(try access.path(of: place, identifier, for: uid, context))"
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

extension AppsAccess {
  /// The path of a user's home below ``root``.
  fileprivate func home(of user: UInt32) throws -> String {
    switch self {
    case .store(let store): return "Users/\(try store.home(of: user))"
    case .daemon(_, let status):
      let users = status.mountPoint + "/Users"
      let directory = try FD.cwd.open(users, O_RDONLY | O_DIRECTORY)
      let homes = try directory.fd.entries().filter { entry in
        let status = try? directory.fd.status(of: entry.name)
        return status?.isDirectory == true && status?.st_uid == user && !entry.name.starts(with: ".".utf8)
      }.map { String(decoding: $0.name, as: UTF8.self) }
      let account = Account.numbered(user)?.name
      guard let home = homes.first(where: { $0 == account }) ?? homes.sorted().first else {
        throw StoreError.noHome(path: "\(users)/\(account ?? "of uid \(user)")")
      }
      return "Users/\(home)"
    }
  }
}

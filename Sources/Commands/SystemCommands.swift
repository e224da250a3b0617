// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Store

/// `insula system update`.
struct SystemUpdateCommand: Command {
  static let description = CommandDescription(
    name: "system update", summary: "Replaces the system domain by a signed directory, as a whole.",
    arguments: [.init(name: "DIR", help: "what was signed", isRequired: true, kind: .directory)],
    options: [AppsAccess.storeOption, CommandDescription.json],
    details: [
      "The signature must lead to a root that the store trusts. The version before it is kept for\n"
        + "'insula system rollback'."
    ],
    examples: ["sudo insula system update NewSystem"])

  private let path: String
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) {
    path = arguments.argument(0) ?? ""
    store = arguments.value("store")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let tree = try context.openDirectory(path)
    let access = try AppsAccess.find(store, writing: true, context)
    var order = AppOrder(.updateSystem, home: nil)
    order.bundle = path
    return tell(try access.perform(order, on: tree.fd, context).system, json, "now", context.console)
  }
}

/// `insula system rollback`.
struct SystemRollbackCommand: Command {
  static let description = CommandDescription(
    name: "system rollback", summary: "Goes back to the system domain before the last update.",
    options: [AppsAccess.storeOption, CommandDescription.json],
    details: ["Another rollback undoes it."])

  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) {
    store = arguments.value("store")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let access = try AppsAccess.find(store, writing: true, context)
    let order = AppOrder(.rollbackSystem, home: nil)
    return tell(try access.perform(order, on: nil, context).system, json, "again", context.console)
  }
}

/// `insula system info`.
struct SystemInfoCommand: Command {
  static let description = CommandDescription(
    name: "system info", summary: "Shows which system domain there is, and which one can be gone back to.",
    options: [AppsAccess.storeOption, CommandDescription.json])

  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) {
    store = arguments.value("store")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let access = try AppsAccess.find(store, context)
    let versions = try access.systemVersions(context)
    if json {
      context.console.print(json: SystemDescription(versions))
      return .ok
    }
    var rows = [["current", versions.current.words]]
    if let previous = versions.previous { rows.append(["before", previous.words]) }
    if !versions.current.root.isEmpty { rows.append(["seal", versions.current.root.asHexadecimal]) }
    context.console.print(table: rows)
    return .ok
  }
}

/// Says which system there is after an order.
private func tell(_ versions: SystemVersions?, _ json: Bool, _ word: String, _ console: Console) -> ExitCode {
  guard let versions else { return .failed }
  if json {
    console.print(json: SystemDescription(versions))
  } else {
    console.print("The system is \(versions.current.words) \(word).")
  }
  return .ok
}

/// The versions, for programs.
private struct SystemDescription: Encodable {
  struct Version: Encodable {
    let root: String
    let version: String
    let team: String
    let installed: Int64

    init(_ version: SystemVersion) {
      root = version.root.asHexadecimal
      self.version = version.version
      team = version.team
      installed = version.installed
    }
  }

  let current: Version
  let previous: Version?

  init(_ versions: SystemVersions) {
    current = Version(versions.current)
    previous = versions.previous.map(Version.init)
  }
}

extension SystemVersion {
  /// For people.
  fileprivate var words: String {
    guard !root.isEmpty else { return "what a new store has, not signed" }
    return (version.isEmpty ? "a version without a name" : "version \(version)") + " of the team \(team)"
  }
}

extension AppsAccess {
  /// The store itself, to look at, whoever serves it.
  func openedStore() throws -> Store {
    switch self {
    case .store(let store): store
    case .daemon(_, let status): try Store(opening: status.store, .inspect)
    }
  }

  /// From the registry, or where that is closed to us, from what the mount shows.
  fileprivate func systemVersions(_ context: Context) throws -> SystemVersions {
    do {
      let store = try openedStore()
      return try Registry.existing(of: store)?.systemVersions()
        ?? SystemVersions(current: .none)
    } catch let error as StoreError {
      guard case .daemon = self, error.kind == .notPermitted else { throw error }
      return try Self.shownVersions(context.openDirectory(root + "/System"))
    }
  }

  private static func shownVersions(_ tree: borrowing OwnedFD) throws -> SystemVersions {
    let found = Result { () throws(SystemSignature.Failure) in try SystemSignature(in: tree.fd) }
    if case .failure(.unsigned) = found { return SystemVersions(current: .none) }
    let signature = try found.get()
    return SystemVersions(
      current: SystemVersion(
        root: signature.rootHash, version: signature.seal.version, team: signature.seal.team, installed: 0))
  }
}

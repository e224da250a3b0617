// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Store

/// `insula system sign`.
struct SystemSignCommand: Command {
  static let description = CommandDescription(
    name: "system sign", summary: "Signs a directory as a whole, so that it can become a system domain.",
    arguments: [
      .init(name: "DIR", help: "what '/System' is to consist of", isRequired: true, kind: .directory)
    ],
    options: [
      .init(name: "identity", value: "NAME", help: "who signs (default: the only identity that there is)"),
      .init(
        name: "version", value: "VERSION",
        help: "which version it is (default: as Library/CoreServices/SystemVersion.plist says)"),
      .init(name: "keep-owners", help: "seal the owners that files have; without it all are root's"),
    ],
    details: [
      "Sealed are the path, type, mode, owner, size, contents or target and the attributes of everything in it.\n"
        + "The standard directories of '/System' that are missing are made. The seal and its signature lie in\n"
        + "DIR/_CodeSignature."
    ],
    examples: ["insula system sign NewSystem --identity Anna --version 26.1"])

  private let path: String
  private let identity: String?
  private let version: String?
  private let keepsOwners: Bool

  init(_ arguments: ParsedArguments) {
    path = arguments.argument(0) ?? ""
    identity = arguments.value("identity")
    version = arguments.value("version")
    keepsOwners = arguments.has("keep-owners")
  }

  func run(in context: Context) throws -> ExitCode {
    guard let place = try context.openIdentities() else { throw SignCommand.noIdentity }
    let identities = IdentityDirectory(place.fd)
    let identity = try identities.identity(named: identity ?? SignCommand.onlyOne(in: identities))
    let tree = try openSystem(path, context)
    let signed = try SystemDomain.sign(
      tree.fd, named: path, by: identity, version: version, keepingOwners: keepsOwners)
    context.console.print(
      "Signed \(path) as '\(identity.leaf.name)' of the team \(identity.team)"
        + (signed.seal.version.isEmpty ? "" : ", version \(signed.seal.version)")
        + ": \(signed.seal.entries.count) files and directories, \(signed.rootHash.asHexadecimal).")
    return .ok
  }
}

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
    let tree = try openSystem(path, context)
    let access = try AppsAccess.find(store, writing: true, context)
    var order = AppOrder(.updateSystem, home: nil)
    order.bundle = path
    guard let versions = try access.perform(order, on: tree.fd, context).system else { return .failed }
    if json {
      context.console.print(json: SystemDescription(versions))
    } else {
      context.console.print("The system is \(versions.current.words) now.")
    }
    return .ok
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
    guard let versions = try access.perform(order, on: nil, context).system else { return .failed }
    if json {
      context.console.print(json: SystemDescription(versions))
    } else {
      context.console.print("The system is \(versions.current.words) again.")
    }
    return .ok
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

/// `insula system verify`.
struct SystemVerifyCommand: Command {
  static let description = CommandDescription(
    name: "system verify",
    summary: "Looks whether the system domain, or a signed directory, is what was signed.",
    arguments: [
      .init(name: "DIR", help: "a signed directory (default: the store's system)", kind: .directory)
    ],
    options: [AppsAccess.storeOption, CommandDescription.json],
    details: ["Every file is read. Exit code 8 says that something is not as it was signed."])

  private let path: String?
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) {
    path = arguments.argument(0)
    store = arguments.value("store")
    json = arguments.has("json")
  }

  private struct Answer: Encodable {
    let good: Bool
    let problems: [String]
    let version: String?
    let team: String?
    let signer: String?
    let root: String?
  }

  func run(in context: Context) throws -> ExitCode {
    let answer = try path.map { try judge($0, context) } ?? judgeInstalled(context)
    if json {
      context.console.print(json: answer)
    } else if answer.good {
      let version = answer.version.map { $0.isEmpty ? "" : ", version \($0)" } ?? ""
      context.console.print(
        answer.root == nil
          ? "The system is what a new store has, which is not signed."
          : "It is what was signed by the team \(answer.team ?? "")\(version).")
    } else {
      for problem in answer.problems { context.console.note(problem) }
    }
    return answer.good ? .ok : .problemsFound
  }

  private func judge(_ path: String, _ context: Context) throws -> Answer {
    let tree = try openSystem(path, context)
    let found = try SystemDomain.judge(tree.fd, context.trust(ofStore: store), at: context.now())
    return Answer(
      good: found.problems.isEmpty, problems: found.problems, version: found.signature?.seal.version,
      team: found.signature?.seal.team, signer: found.signer?.name,
      root: found.signature?.rootHash.asHexadecimal)
  }

  private func judgeInstalled(_ context: Context) throws -> Answer {
    let opened = try AppsAccess.find(store, context).openedStore()
    guard let registry = try Registry.existing(of: opened) else {
      return Answer(good: true, problems: [], version: nil, team: nil, signer: nil, root: nil)
    }
    let system = SystemDomain(opened, registry, trust: Trust(roots: []))
    let current = try system.versions().current
    var problems: [String]
    do throws(SystemFailure) {
      problems = try system.findings().map(\.description)
    } catch {
      problems = [error.description]
    }
    return Answer(
      good: problems.isEmpty, problems: problems, version: current.version, team: current.team, signer: nil,
      root: current.root.isEmpty ? nil : current.root.asHexadecimal)
  }
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
  fileprivate func openedStore() throws -> Store {
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
      return try Self.shownVersions(openSystem(root + "/System", context))
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

/// Opens a directory that a person named.
private func openSystem(_ path: String, _ context: Context) throws -> OwnedFD {
  do throws(Errno) {
    return try FD.cwd.openFollowing(context.reachable(path), O_RDONLY | O_DIRECTORY)
  } catch {
    throw CommandFailure(CommandFailure(error).code, "can't open \(path): \(error.message)")
  }
}

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
      SignCommand.identityOption,
      .init(
        name: "version", value: "VERSION",
        help: "which version it is (default: as Library/CoreServices/SystemVersion.plist says)"),
      .init(name: "keep-owners", help: "seal the owners that files have; without it all are root's"),
    ],
    details: [
      "Sealed are the path, type, mode, owner, size, "
        + "contents or target and the attributes of everything in it.\n"
        + "The standard directories of '/System' that are missing are made. "
        + "The seal and its signature lie in\n"
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
    let identity = try SignCommand.identity(named: identity, in: context)
    let tree = try context.openDirectory(path)
    let signed = try SystemDomain.sign(
      tree.fd, named: path, by: identity, version: version, keepingOwners: keepsOwners)
    context.console.print(
      "Signed \(path) as '\(identity.leaf.name)' of the team \(identity.team)"
        + (signed.seal.version.isEmpty ? "" : ", version \(signed.seal.version)")
        + ": \(signed.seal.entries.count) files and directories, \(signed.rootHash.asHexadecimal).")
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
    let tree = try context.openDirectory(path)
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

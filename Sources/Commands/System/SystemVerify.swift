// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import LinuxIO
internal import Policy
internal import Store

/// `insula system verify`.
struct SystemVerifyCommand: Command {
  static let description = CommandDescription(
    name: "system verify",
    summary: "Checks whether the system domain, or a signed directory, is what was signed.",
    arguments: [
      .init(name: "DIR", help: "a signed directory (default: the store's system domain)", kind: .directory)
    ],
    options: [AppsAccess.storeOption, CommandDescription.json],
    details: [
      "Every file is read. Exit code 8 means that something differs from what was signed."
    ],
    storeUse: .looks)

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
          ? "The system domain is the initial one of a new store, which is not signed."
          : "It matches the signature of the team \(answer.team ?? "")\(version).")
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

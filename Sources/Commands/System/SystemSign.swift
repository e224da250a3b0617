// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import LinuxIO
internal import Policy

/// `insula system sign`.
struct SystemSignCommand: Command {
  static let description = CommandDescription(
    name: "system sign", summary: "Signs a directory as a whole, so that it can become the system domain.",
    arguments: [
      .init(name: "DIR", help: "the new contents of '/System'", isRequired: true, kind: .directory)
    ],
    options: [
      SignCommand.identityOption,
      .init(
        name: "version", value: "VERSION",
        help: "the version (default: the one in Library/CoreServices/SystemVersion.plist)"),
      .init(name: "keep-owners", help: "seal the owners of files; without this option, root owns everything"),
    ],
    details: [
      """
      The seal covers the path, type, mode, owner, size, contents or link target, and extended attributes of
      everything in DIR. Signing creates missing standard directories of '/System'. The seal and its signature
      are in DIR/_CodeSignature.
      """
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
    let tree = try context.openDirectoryToMake(in: path)
    let signed = try SystemDomain.sign(
      tree.fd, named: path, by: identity, version: version, keepingOwners: keepsOwners)
    context.console.say(
      "Signed \(path) as '\(identity.leaf.name)' of the team \(identity.team)"
        + (signed.seal.version.isEmpty ? "" : ", version \(signed.seal.version)")
        + ": \(signed.seal.entries.count) files and directories, \(signed.rootHash.asHexadecimal).")
    return .ok
  }
}

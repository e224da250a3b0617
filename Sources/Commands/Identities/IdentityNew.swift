// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import LinuxIO

/// `insula identity new`.
struct IdentityNewCommand: Command {
  static let worksInApps = true
  static let description = CommandDescription(
    name: "identity new", summary: "Creates an identity that can sign bundles.",
    arguments: [
      .init(name: "NAME", help: "the identity's name, here and in its certificate", isRequired: true)
    ],
    options: [
      .init(
        name: "team", value: "TEAM",
        help: "letters, digits, '-' and '.' (default: ten characters that are generated for you)")
    ],
    details: [
      """
      Apps of one team can update each other and share group containers. All identities that you create here
      are under one root; whoever trusts this root trusts all of them.
      """,
      """
      Identities are kept in ~/.config/insula/identities, which nobody else may read: whoever has a key can
      sign as you.
      """,
    ],
    examples: ["insula identity new Anna", "insula identity new 'Anna at work' --team EXAMPLE01"])

  private let name: String
  private let team: String?

  init(_ arguments: ParsedArguments) {
    name = arguments.argument(0) ?? ""
    team = arguments.value("team")
  }

  var goesByConfiguration: Bool { false }

  func run(in context: Context) throws -> ExitCode {
    let place = try context.makeIdentities()
    let identity = try IdentityDirectory(place.fd).make(name, team: team, at: context.now())
    context.console.say("Created the identity '\(identity.name)' of the team \(identity.team).")
    guard let root = identity.chain.last, try !context.trust(ofStore: nil).roots.contains(root) else {
      return .ok
    }
    context.console.say(
      "To trust this identity, run 'insula identity export \(identity.name.forShell) | insula trust add -'.")
    return .ok
  }
}

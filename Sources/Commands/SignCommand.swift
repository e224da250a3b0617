// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import LinuxIO
internal import Policy

/// `insula sign`.
struct SignCommand: Command {
  static let description = CommandDescription(
    name: "sign", summary: "Signs a bundle, and before it those that are in it.",
    arguments: [
      .init(name: "BUNDLE", help: "a directory such as Note.app", isRequired: true, kind: .directory)
    ],
    options: [
      identityOption,
      .init(
        name: "entitlements", value: "FILE",
        help: "what the app is to be allowed, a property list (default: what was signed before)"),
      .init(name: "force", help: "sign anew what is signed already"),
    ],
    details: [
      "Bundles inside are signed anew too, with the entitlements that they have. "
        + "What a verification would find is not\n"
        + "signed: it ends with the exit code that 'insula verify' has for that. "
        + "A new signature takes the old one's\n"
        + "place in one step.",
      "Documentation/SIGNING.md says what lies where, and how to do the same with openssl.",
    ],
    examples: [
      "insula sign Note.app --identity Anna --entitlements Note.entitlements", "insula sign --force Note.app",
    ])

  static let identityOption = CommandDescription.Option(
    name: "identity", value: "NAME", help: "who signs (default: the only identity that there is)")

  private let path: String
  private let identity: String?
  private let entitlements: String?
  private let force: Bool

  init(_ arguments: ParsedArguments) {
    path = arguments.argument(0) ?? ""
    identity = arguments.value("identity")
    entitlements = arguments.value("entitlements")
    force = arguments.has("force")
  }

  func run(in context: Context) throws -> ExitCode {
    let identity = try Self.identity(named: identity, in: context)
    let given = try entitlements.map { try context.contents(of: $0, limit: PropertyList.sizeLimit) }
    let named = NamedBundle(path, context)
    do {
      // What is printed while a line shows how far it is would stand behind that.
      let (identifier, isKept) = try named.open("signing") { bundle in
        guard try force || bundle.signaturePart(SealLayout.codeSignature) == nil else {
          throw CommandFailure(
            .failed, "\(path.harmless) is signed already, and nothing was changed; '--force' signs it anew")
        }
        let kept = try given ?? bundle.signaturePart(SealLayout.codeEntitlements)
        try bundle.sign(as: identity, entitlements: kept, at: context.now())
        return (bundle.info.identifier, given == nil && kept != nil)
      }
      context.console.print(
        "Signed \(path.harmless) (\(identifier)) as '\(identity.leaf.name)' of the team \(identity.team).")
      if isKept { context.console.print("It keeps the entitlements that it had.") }
      return .ok
    } catch let finding as Bundles.Finding {
      return named.tell([finding], all: true)
    } catch let failure as SigningFailure {
      switch failure {
      case .refused(let findings): return named.tell(findings, all: true)
      case .notValidNow, .crypto: throw CommandFailure(.failed, failure.description)
      case .notWritten(_, let errno): throw CommandFailure(errno, failure.description.harmless)
      }
    }
  }

  /// Who signs: whoever is named, or the only identity that there is.
  static func identity(named name: String?, in context: Context) throws -> Identity {
    guard let place = try context.openIdentities() else { throw noIdentity }
    let identities = IdentityDirectory(place.fd)
    return try identities.identity(named: name ?? onlyOne(in: identities))
  }

  private static let noIdentity = CommandFailure(
    .failed, "there is no identity to sign with; 'insula identity new NAME' makes one")

  private static func onlyOne(in identities: IdentityDirectory) throws -> String {
    let all = try identities.list()
    guard let first = all.first else { throw noIdentity }
    guard all.count == 1 else {
      throw description.error("say who signs, with '--identity': \(all.map(\.name).joined(separator: ", "))")
    }
    return first.name
  }
}
